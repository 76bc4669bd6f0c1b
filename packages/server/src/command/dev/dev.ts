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
import { findSchema, localDirectory, addDatabaseOptions, withPawl } from "../terminal/connection.js";
import { nextSteps } from "./next-steps.js";
import { type Watch, watchFile } from "./watch.js";
import { Refusal, UsageError } from "../terminal/failure.js";
import { fixedPort, portNumber } from "../terminal/input.js";
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
  readonly postgresPort?: number;
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
      "pawl dev --postgres-port 5433",
      "pawl dev --watch src/definitions.ts --url postgres://localhost/app --port 9000",
    ],
  })
    .option("--watch <file>", "serve the definitions that this file exports; reload them whenever it changes")
    .option(
      "--port <number>",
      "the port of the server (default: 8080, or a free one if that is in use)",
      portNumber,
    )
    .option(
      "--postgres-port <number>",
      "open the local Postgres on this port of 127.0.0.1 too, for psql and other tools",
      fixedPort,
    );
  addDatabaseOptions(command).action(action(session, (flags: Flags) => dev(flags, session.shell)));
}

async function dev(flags: Flags, shell: Shell): Promise<void> {
  const file = flags.watch === undefined ? undefined : requireFile(flags.watch);
  const schema = findSchema(flags.schema) ?? "pawl";
  let watch: Watch | undefined;
  const interrupted = waitForInterrupt(() => watch?.kill());
  const database = await openDatabase(flags);
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
      const serves: string[] = [];
      watch = file === undefined ? undefined : startWatch(file, database.url, schema, shell, serves);
      await Promise.race([watch?.begun, interrupted]);
      const isEmpty = await hasNoRuns(database.url, schema);
      shell.print(nextSteps({ url: server.url, hasFile: file !== undefined, serves, isEmpty }));
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

/** The database of the URL, or the local one, on a port of its own if that is wanted. */
async function openDatabase({ url, postgresPort }: Flags): Promise<Located> {
  const given = databases.givenUrl(url);
  if (given !== undefined && postgresPort !== undefined) {
    throw new UsageError(
      `--postgres-port is for the local Postgres, but ${url === undefined ? "PAWL_URL or DATABASE_URL" : "--url"} ` +
        "names a database: leave out one of them",
    );
  }
  try {
    return await databases.locate(given, postgresPort);
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
    if (code !== "PortTaken") throw error;
    throw new Refusal(
      `port ${postgresPort} is in use: give another with --postgres-port, or end the program that listens there`,
      { cause: error },
    );
  }
}

const hasNoRuns = (url: string, schema: string): Promise<boolean> =>
  withPawl({ url, schema }, async (pawl) => (await pawl.runs.list({ limit: 1 })).runs.length === 0);

/** Adds to `names` what it serves. */
function startWatch(file: string, url: string, schema: string, shell: Shell, names: string[]): Watch {
  const { colors } = shell;
  const say = (text: string): void => shell.print(properties([["worker  ", text]], shell));
  return watchFile({
    file,
    url,
    schema,
    onServing: (serves, isAgain) => {
      names.push(...serves);
      say(`${isAgain ? "changed: now " : ""}serves ${serves.join(", ")} of ${shortPath(file)}`);
    },
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

const placeOf = (database: Located): string =>
  database.isLocal ? `${localDirectory} (local)` : databases.describeAddress(database.url);

function requireFile(file: string): string {
  if (existsSync(file)) return resolve(file);
  throw new UsageError(`there is no file ${file}: --watch needs a file that exports definitions`);
}
