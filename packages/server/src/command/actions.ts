/** `pawl actions`: the action log, who has done what and when. */

import type { Command } from "commander";
import type { Action } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { integer, pastDate } from "./terminal/input.js";
import { action, addCommand, type Session } from "./terminal/session.js";
import { table } from "./terminal/table.js";
import { compactJson, moment, prettyJson, printable } from "./terminal/text.js";

interface Flags extends ConnectionOptions {
  readonly who?: string;
  readonly action?: string;
  readonly target?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly json?: true;
}

export function addActions(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "actions",
    description: "show the action log: who has done what, when and from where",
    examples: ["pawl actions", "pawl actions --target 64", "pawl actions --action runs.cancel --since 1d"],
  })
    .option("--who <name>", 'only actions of this token, or "local"')
    .option("--action <action>", "only this action, such as runs.cancel")
    .option("--target <target>", "only actions on this run, operation, limit or schedule")
    .option(
      "--since <time>",
      "at this time or later: ISO 8601, or a duration before now such as 1h",
      pastDate,
    )
    .option("--until <time>", "before this time, in the same formats", pastDate)
    .option("--limit <number>", "how many lines to show, 1 to 1000 (default: 100)", integer)
    .option("--cursor <cursor>", "continue after the previous page, with the cursor it printed")
    .option("--json", "print JSON: { actions, cursor }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const { who, action: what, target, since, until, limit, cursor } = flags;
      const options = { who, action: what, target, since, until, limit, cursor };
      const page = await withPawl(flags, (pawl) => pawl.actions.list(options));
      const { shell } = session;
      if (flags.json === true) return shell.print(prettyJson(page));
      if (page.actions.length === 0) return shell.print("no actions");
      const rows = page.actions.map((line) => [moment(line.at, shell), ...cellsOf(line)]);
      const lines = table(["WHEN", "WHO", "FROM", "ACTION", "TARGET", "DETAIL"], rows, shell);
      const more = page.cursor === null ? "" : `\n${shell.colors.dim(`more: --cursor ${page.cursor}`)}`;
      shell.print(lines + more);
    }),
  );
}

function cellsOf({ who, from, action: what, target, detail }: Action): string[] {
  return [who, from, what, target ?? "", detail === null ? "" : compactJson(detail)].map(printable);
}
