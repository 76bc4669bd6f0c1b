/** `pawl hold`: keeps a database still, such as a restored backup before workers connect to it. */

import type { Command } from "commander";
import { hold } from "pawl";
import { takesDatabase } from "./terminal/connection.js";
import { databaseOf } from "./fork.js";
import { addCommand, answers, type Session } from "./terminal/session.js";
import { prettyJson } from "./terminal/text.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly release?: true;
  readonly json?: true;
}

export function addHold(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "hold",
    description: "keep the database still: nothing in it is executed; runs and signals are accepted and wait",
    examples: ["pawl hold --url postgres://app@db:5432/restored", "pawl hold --release"],
  })
    .option("--release", "let it go on")
    .option("--json", "print JSON: { held, changed }");
  takesDatabase(command).action(
    answers(session, async (flags: Flags) => {
      const held = flags.release !== true;
      const database = databaseOf(flags);
      const { changed } = held ? await hold(database) : await hold.release(database);
      session.shell.print(flags.json === true ? prettyJson({ held, changed }) : describe(held, changed));
    }),
  );
}

function describe(held: boolean, changed: boolean): string {
  if (held)
    return `${changed ? "held" : "it was held before"}: nothing is executed until: pawl hold --release`;
  return changed ? "released: work goes on" : "it was not held: nothing to do";
}
