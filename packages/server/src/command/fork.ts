/**
 * `pawl fork`: copies the database with every run in it, and adopts a copy as a database of its
 * own.
 */

import type { Command } from "commander";
import { type Adopted, fork } from "pawl";
import { database } from "pawl/engine";
import { findSchema, findUrl, addDatabaseOptions } from "./terminal/connection.js";
import { action, addCommand, type Session } from "./terminal/session.js";
import { duration, prettyJson } from "./terminal/text.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly held?: true;
  readonly json?: true;
}

export function addFork(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "fork",
    description: "copy the database, with every run in it; both continue independently",
    examples: [
      "pawl fork debug --held",
      "pawl fork staging --url postgres://app@db:5432/app --json",
      "pawl fork adopt --url postgres://app@db:5432/debug",
    ],
  })
    .argument("<name>", "the name of the copy, a database on the same server")
    .option("--held", "hold the copy until: pawl fork adopt")
    .option("--json", "print JSON: { name, url, held, pausedMs, method, notes }");
  addDatabaseOptions(command).action(
    action(session, async (name: string, flags: Flags) => {
      const { shell } = session;
      const made = await fork({ ...databaseOf(flags), name, held: flags.held === true });
      const shown = { ...made, url: database.withoutPassword(made.url), pausedMs: Math.round(made.pausedMs) };
      for (const note of made.notes) shell.printError(`${shell.errorColors.yellow("note:")} ${note}`);
      const text = [
        `made ${name}; the original was paused for ${duration(made.pausedMs)}`,
        ...(made.held
          ? ["the copy is held: workers execute nothing in it until: pawl fork adopt --url …"]
          : []),
        shown.url,
      ].join("\n");
      shell.print(flags.json === true ? prettyJson(shown) : text);
    }),
  );
  addAdopt(command, session);
}

function addAdopt(forks: Command, session: Session): void {
  const command = addCommand(forks, session, {
    name: "adopt",
    description: "adopt a copy as a database of its own: workers stop warning, and held work resumes",
    examples: ["pawl fork adopt --url postgres://app@db:5432/debug"],
  }).option("--json", "print JSON: { wasHeld, wasCopy }");
  addDatabaseOptions(command).action(
    action(session, async (flags: Flags) => {
      const adopted = await fork.adopt(databaseOf(flags));
      session.shell.print(flags.json === true ? prettyJson(adopted) : describe(adopted));
    }),
  );
}

function describe({ wasHeld, wasCopy }: Adopted): string {
  if (!wasHeld && !wasCopy) return "not a copy and not held: nothing to do";
  return [
    ...(wasCopy ? ["adopted: workers no longer warn that it is a copy"] : []),
    ...(wasHeld ? ["work resumes"] : []),
  ].join("; ");
}

/** The database of the options of a command. */
export function databaseOf(flags: Pick<Flags, "url" | "schema">): {
  url: string | undefined;
  schema: string | undefined;
} {
  return { url: findUrl(flags.url), schema: findSchema(flags.schema) };
}
