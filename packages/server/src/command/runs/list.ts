/** `pawl runs list`: a page of runs, newest first. */

import type { Command } from "commander";
import type { ListOptions, Page, Run } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { integer } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { table } from "../terminal/table.js";
import { describeError, duration, moment, prettyJson, printable, showTags, state } from "../terminal/text.js";
import {
  addFilterOptions,
  addTimeOptions,
  type FilterFlags,
  filterOf,
  statusOf,
  type TimeFlags,
} from "./filter.js";

type Flags = ConnectionOptions &
  FilterFlags &
  TimeFlags &
  Pick<ListOptions, "cursor" | "limit"> & { readonly json?: true };

export function addRunsList(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "list",
    description: "list runs, newest first",
    examples: [
      "pawl runs list",
      "pawl runs list --name signup --status failed --since 1h",
      "pawl runs list --status awaiting_signal --tag customer=42",
      "pawl runs list --since 2026-01-31T12:00:00Z --limit 100 --json",
    ],
  });
  addTimeOptions(addFilterOptions(command))
    .option("--limit <number>", "how many runs to list, 1 to 100 (default: 20)", integer)
    .option("--cursor <cursor>", "continue after the previous page, with the cursor it printed")
    .option("--json", "print JSON: { runs, cursor }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const { cursor, limit } = flags;
      const filter = { ...(await filterOf(flags, session.shell)), cursor, limit };
      const page = await withPawl(flags, (pawl) => pawl.runs.list(filter));
      session.shell.print(flags.json === true ? prettyJson(page) : showPage(page, session.shell));
    }),
  );
}

function showPage({ runs, cursor }: Page, shell: Shell): string {
  const lines = showRuns(runs, shell);
  return cursor === null ? lines : `${lines}\n${shell.colors.dim(`more: --cursor ${cursor}`)}`;
}

/** A table of runs. */
export function showRuns(runs: readonly Run[], shell: Shell): string {
  if (runs.length === 0) return "no runs";
  const isTagged = runs.some(({ tags }) => Object.keys(tags).length > 0);
  return table(
    ["RUN", "NAME", "STATUS", "STEP", "STARTED", "TOOK", ...(isTagged ? ["TAGS"] : []), "ERROR"],
    runs.map((run) => rowOf(run, isTagged, shell)),
    shell,
  );
}

function rowOf(run: Run, isTagged: boolean, shell: Shell): string[] {
  const { runId, name, version, step, startedAt, completedAt, error } = run;
  const { word, note } = statusOf(run);
  return [
    runId,
    `${name}@${version}`,
    state(word, shell.colors) + note,
    step ?? "",
    moment(startedAt, shell),
    completedAt === null ? "" : duration(completedAt.getTime() - startedAt.getTime()),
    ...(isTagged ? [printable(showTags(run.tags))] : []),
    describeError(error),
  ];
}
