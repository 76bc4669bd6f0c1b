/**
 * `pawl dev`: everything for development: a Postgres (local, or the one of the URL), its schema,
 * the server, and with `--watch` a worker for the definitions of a file. Ctrl-C stops it all and
 * leaves only the data in `.pawl/`.
 */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { migrate } from "pawl";
import { database as databases, type Located } from "pawl/engine";
import type { ServerOptions } from "../../index.js";
import { findSchema, localDirectory, addDatabaseOptions } from "../terminal/connection.js";
import { type Watch, watchFile } from "./watch.js";
import { Refusal, UsageError } from "../terminal/failure.js";
import { portNumber } from "../terminal/input.js";
import { lineLogger } from "../terminal/line-logger.js";
import { waitForInterrupt } from "../terminal/interrupts.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { properties } from "../terminal/table.js";
import { shortPath } from "../terminal/text.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly port?: number;
  readonly watch?: string;
}

const defaultPort = 8080;

export function addDev(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "dev",
    description: "start a local Postgres, the server, and a worker for the definitions of a file",
    examples: [
      "pawl dev",
      "pawl dev --watch src/definitions.ts",
      "pawl dev --watch src/definitions.ts --url postgres://localhost/app --port 9000",
    ],
  })
    .option("--watch <file>", "serve the definitions that this file exports; reload them whenever it changes")
    .option(
      "--port <number>",
      "the port of the server (default: 8080, or a free one if that is in use)",
      portNumber,
    );
  addDatabaseOptions(command).action(action(session, (flags: Flags) => dev(flags, session.shell)));
}

async function dev(flags: Flags, shell: Shell): Promise<void> {
  const file = flags.watch === undefined ? undefined : requireFile(flags.watch);
  const schema = findSchema(flags.schema) ?? "pawl";
  let watch: Watch | undefined;
  const interrupted = waitForInterrupt(() => watch?.kill());
  const database = await databases.locate(databases.givenUrl(flags.url));
  try {
    const { to } = await migrate({ url: database.url, schema });
    const server = await listen({ database: database.url, schema, logger: lineLogger(shell) }, flags.port);
    try {
      const places: [string, string][] = [
        ["postgres", `${placeOf(database)}, schema "${schema}" at version ${to}`],
        ["", database.isLocal ? database.url : ""],
        ["server", server.url],
        ["", `${server.url}/v1/openapi.json`],
      ];
      if (file === undefined)
        places.push(["worker", "none: --watch definitions.ts serves the definitions of that file"]);
      shell.print(properties(places, shell));
      watch = file === undefined ? undefined : startWatch(file, database.url, schema, shell);
      await Promise.race([watch?.begun, interrupted]);
      shell.print(nextSteps(file, server.url));
      await interrupted;
      shell.print("stopping; Ctrl-C again stops at once");
      await watch?.stop();
    } finally {
      await server.close();
    }
  } finally {
    await database.close();
  }
}

function startWatch(file: string, url: string, schema: string, shell: Shell): Watch {
  const { colors } = shell;
  const say = (text: string): void => shell.print(properties([["worker  ", text]], shell));
  return watchFile({
    file,
    url,
    schema,
    onServing: (serves, isAgain) =>
      say(`${isAgain ? "changed: now " : ""}serves ${serves.join(", ")} of ${shortPath(file)}`),
    onBroken: (text, goesOn) =>
      say(
        `${colors.red(text)}; ${goesOn ? "the previous code keeps running" : "nothing is served"} until you fix this`,
      ),
    onCrash: (how) => say(colors.red(`ended by ${how}; starting again`)),
  });
}

/** Listens on the given port, else on the default one, else on any free one. */
async function listen(
  options: ServerOptions,
  asked: number | undefined,
): Promise<{ url: string; close: () => Promise<void> }> {
  // Imported here, because no other command needs Fastify.
  const { createServer } = await import("../../index.js");
  for (const port of asked === undefined ? [defaultPort, 0] : [asked]) {
    const server = await createServer({ ...options, port });
    try {
      return { url: await server.listen(), close: () => server.close() };
    } catch (error) {
      await server.close();
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
  throw new Refusal(`port ${asked} is in use: give another with --port, or 0 for any free port`);
}

function nextSteps(file: string | undefined, url: string): string {
  const calls =
    file === undefined
      ? ["npx pawl runs list"]
      : ["npx pawl runs start <name> '<input as JSON>' --wait", "npx pawl runs list"];
  return `
The dashboard: ${url}/

Next, in another terminal in this directory:
${[...calls, "npx pawl --help"].map((call) => `  ${call}`).join("\n")}
Ctrl-C stops everything; the data stay.
`;
}

const placeOf = (database: Located): string =>
  database.isLocal ? `${localDirectory} (local)` : databases.describeAddress(database.url);

function requireFile(file: string): string {
  if (existsSync(file)) return resolve(file);
  throw new UsageError(`there is no file ${file}: --watch needs a file that exports definitions`);
}
