/**
 * The options that filter runs: all filters of `pawl.runs.list`. Used by `pawl runs list`, `tail`
 * and `bulk`. `--status` also takes each word that the commands print as the status of a run.
 */

import { type Command, Option } from "commander";
import type { ListOptions, Run, Tags } from "pawl";
import { UsageError } from "../terminal/failure.js";
import { addTag, integer, pastDate, readJson } from "../terminal/input.js";
import type { Shell } from "../terminal/shell.js";

const statuses = ["running", "completed", "failed", "cancelled"] as const;
const phases = [
  "runnable",
  "executing",
  "awaiting_signal",
  "awaiting_children",
  "done",
  "failed",
  "cancelled",
] as const;
const kinds = ["job", "machine", "workflow"];
const words = [...new Set([...statuses, ...phases, "paused"])];

export type FilterFlags = Pick<
  ListOptions,
  "name" | "version" | "phase" | "queue" | "kind" | "error" | "paused" | "correlationKey"
> & {
  readonly status?: string;
  readonly input?: string;
  readonly tag?: Tags;
  readonly parent?: string;
};

export type TimeFlags = Pick<ListOptions, "since" | "until">;

/** Adds the options that filter runs. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--name <name>", "only runs of this definition")
    .option("--version <number>", "only runs of this version", integer)
    .addOption(new Option("--kind <kind>", "only runs of definitions of this kind").choices(kinds))
    .addOption(
      new Option("--status <status>", "only runs with this status, as a list prints it").choices(words),
    )
    .addOption(new Option("--phase <phase>", "only runs in this phase").choices(phases))
    .option("--paused", "only runs that are paused themselves")
    .option("--error <code>", "only runs that failed with this error code or name")
    .option("--queue <queue>", "only runs of this queue")
    .option("--parent <run>", "only children of this run")
    .option("--tag <name=value>", "only runs with this tag; may be given several times", addTag)
    .option("--correlation-key <key>", "only runs with this correlation key")
    .option("--input <json>", 'only runs whose input contains this, such as \'{"user":{"id":42}}\'');
}

/** Adds the options that filter runs by the time of their start. */
export function addTimeOptions(command: Command): Command {
  return command
    .option(
      "--since <time>",
      "started at this time or later: ISO 8601, or a duration before now such as 1h",
      pastDate,
    )
    .option("--until <time>", "started before this time, in the same formats", pastDate);
}

/** The filter of these options. */
export async function filterOf(flags: FilterFlags & TimeFlags, shell: Shell): Promise<ListOptions> {
  const { name, version, queue, kind, error, correlationKey, since, until } = flags;
  return {
    name,
    version,
    queue,
    kind,
    error,
    correlationKey,
    since,
    until,
    tags: flags.tag,
    parentId: flags.parent,
    input: await readJson(flags.input, "--input", shell),
    ...stateOf(flags),
  };
}

/** `--status` as the filter that finds the runs with this word in a list. */
function stateOf({
  status: word,
  phase,
  paused,
}: FilterFlags): Pick<ListOptions, "status" | "phase" | "paused"> {
  const status = statuses.find((one) => one === word);
  if (word === undefined || status !== undefined) return { status, phase, paused };
  if (word === "paused") return { phase, paused: true };
  if (phase !== undefined) {
    throw new UsageError(`--status ${word} is a phase, and so is --phase ${phase}: leave out one of them`);
  }
  return { phase: phases.find((one) => one === word), paused };
}

/**
 * The status of a run in a list, and what to add to it. `--status` takes the word: a run that is
 * paused itself is `paused`, a live run has its phase, an ended one its status.
 */
export function statusOf(run: Run): { readonly word: string; readonly note: string } {
  const word = run.status === "running" ? run.phase : run.status;
  if (run.paused === null) return { word, note: "" };
  return run.paused.scope === "run"
    ? { word: "paused", note: "" }
    : { word, note: ` (${run.paused.scope} paused)` };
}
