/** `pawl hold`: holds a database, such as a restored backup before workers connect to it. */

import type { Command } from "commander";
import { hold } from "pawl";
import { actingAs } from "pawl/engine";
import { addDatabaseOptions } from "./terminal/connection.js";
import { databaseOf } from "./fork.js";
import { action, addCommand, type Session } from "./terminal/session.js";
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
    description:
      "hold the database: workers execute nothing in it; it accepts starts and signals, and they wait",
    examples: ["pawl hold --url postgres://app@db:5432/restored", "pawl hold --release"],
  })
    .option("--release", "resume work")
    .option("--json", "print JSON: { held, changed }");
  addDatabaseOptions(command).action(
    action(session, async (flags: Flags) => {
      const held = flags.release !== true;
      const database = databaseOf(flags);
      const { changed } = await actingAs({ who: "local", from: "cli" }, () =>
        held ? hold(database) : hold.release(database),
      );
      session.shell.print(flags.json === true ? prettyJson({ held, changed }) : describe(held, changed));
    }),
  );
}

function describe(held: boolean, changed: boolean): string {
  if (held) return `${changed ? "held" : "already held"}: workers execute nothing until: pawl hold --release`;
  return changed ? "released: work resumes" : "not held: nothing to do";
}
