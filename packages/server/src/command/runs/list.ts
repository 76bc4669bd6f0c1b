/** `pawl runs list`: a page of runs, newest first. */

import { type Command, Option } from "commander";
import type { ListOptions, Page, Run, Tags } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { addTag, integer, pastDate, readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { table } from "../terminal/table.js";
import { describeError, duration, moment, prettyJson, printable, showTags, state } from "../terminal/text.js";

const statuses = ["running", "completed", "failed", "cancelled"];
const phases = [
  "runnable",
  "executing",
  "awaiting_signal",
  "awaiting_children",
  "done",
  "failed",
  "cancelled",
];

type Flags = ConnectionOptions &
  FilterFlags &
  Pick<ListOptions, "since" | "until" | "cursor" | "limit"> & { readonly json?: true };

export type FilterFlags = Pick<ListOptions, "name" | "version" | "status" | "phase" | "queue" | "paused"> & {
  readonly input?: string;
  readonly tag?: Tags;
  readonly correlationKey?: string;
};

/** The filter of these options. */
export async function filterOf(flags: FilterFlags, shell: Shell): Promise<ListOptions> {
  const { name, version, status, phase, queue, paused, tag: tags, correlationKey } = flags;
  const input = await readJson(flags.input, "--input", shell);
  return { name, version, status, phase, queue, paused, tags, correlationKey, input };
}

/** Adds the options that filter runs. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--name <name>", "only runs of this definition")
    .option("--version <number>", "only runs of this version", integer)
    .addOption(new Option("--status <status>", "only runs with this status").choices(statuses))
    .addOption(new Option("--phase <phase>", "only runs in this phase").choices(phases))
    .option("--queue <queue>", "only runs of this queue")
    .option("--tag <name=value>", "only runs with this tag; may be given several times", addTag)
    .option("--correlation-key <key>", "only runs with this correlation key")
    .option("--paused", "only runs that are paused themselves")
    .option("--input <json>", 'only runs whose input contains this, such as \'{"user":{"id":42}}\'');
}

export function addRunsList(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "list",
    description: "list runs, newest first",
    examples: [
      "pawl runs list",
      "pawl runs list --name signup --status failed --since 1h",
      "pawl runs list --since 2026-01-31T12:00:00Z --limit 100 --json",
    ],
  });
  addFilterOptions(command)
    .option(
      "--since <time>",
      "started at this time or later: ISO 8601, or a duration before now such as 1h",
      pastDate,
    )
    .option("--until <time>", "started before this time, in the same formats", pastDate)
    .option("--limit <number>", "how many runs to list, 1 to 100 (default: 20)", integer)
    .option("--cursor <cursor>", "continue after the previous page, with the cursor it printed")
    .option("--json", "print JSON: { runs, cursor }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const { since, until, cursor, limit } = flags;
      const filter = { ...(await filterOf(flags, session.shell)), since, until, cursor, limit };
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
  const { runId, name, version, status, phase, step, startedAt, completedAt, error } = run;
  const word = run.paused !== null ? "paused" : status === "running" ? phase : status;
  return [
    runId,
    `${name}@${version}`,
    state(word, shell.colors),
    step ?? "",
    moment(startedAt, shell),
    completedAt === null ? "" : duration(completedAt.getTime() - startedAt.getTime()),
    ...(isTagged ? [printable(showTags(run.tags))] : []),
    describeError(error),
  ];
}
