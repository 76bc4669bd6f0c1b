/** `pawl runs bulk`: one action on all runs that match a filter. */

import { Argument, type Command } from "commander";
import { type BulkOperation, type BulkPreview, type CountOptions, InvalidOption, type Pawl } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { integer, readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { plural, prettyJson } from "../terminal/text.js";
import { addFilterOptions, addTimeOptions, type FilterFlags, filterOf, type TimeFlags } from "./filter.js";

const actions = ["cancel", "rerun", "pause", "resume", "signal", "delete"];

interface Flags extends ConnectionOptions, FilterFlags, TimeFlags {
  readonly all?: true;
  readonly dryRun?: true;
  readonly reason?: string;
  readonly cascade?: true;
  readonly from?: string;
  readonly toVersion?: number;
  readonly signal?: string;
  readonly payload?: string;
  readonly json?: true;
}

export function addRunsBulk(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "bulk",
    description: "cancel, rerun, pause, resume, signal or delete all runs that match a filter",
    examples: [
      "pawl runs bulk rerun --status failed --since 1h --dry-run",
      "pawl runs bulk rerun --name signup --status failed --error Timeout",
      "pawl runs bulk cancel --name signup --phase runnable --reason obsolete",
    ],
  }).addArgument(new Argument("<action>", "what to do with each run").choices(actions));
  addTimeOptions(addFilterOptions(command))
    .option("--all", "act on all runs, without any filter")
    .option("--dry-run", "only count the runs and show the first ten")
    .option("--reason <text>", "for cancel and pause: recorded with the runs")
    .option("--cascade", "for cancel: also all their descendants")
    .option("--from <step>", 'for rerun: the step to begin with, or "start"')
    .option("--to-version <number>", "for rerun: another version of the definition", integer)
    .option("--signal <name>", "for signal: the name of the signal")
    .option("--payload <json>", "for signal: JSON, @file.json, or - for standard input")
    .option("--json", "print JSON: the operation, or { count, runs } of a dry run");
  addConnectionOptions(command).action(
    action(session, async (given: string, flags: Flags) => {
      const where = await filterOf(flags, session.shell);
      if (flags.all !== true && Object.values(where).every((value) => value === undefined)) throw noFilter;
      const options = { action: given, where, ...(await optionsOf(flags, session)) };
      const answer = await withPawl(flags, (pawl) => start(pawl, options));
      session.shell.print(flags.json === true ? prettyJson(answer) : describe(answer, given));
    }),
  );
}

const noFilter = new InvalidOption(
  "runs bulk needs a filter, such as --name signup or --status failed; to act on all runs, pass --all",
);

/** The library checks the action, and which options it takes. */
function start(pawl: Pawl, options: { where: CountOptions }): Promise<BulkOperation | BulkPreview> {
  return pawl.runs.bulk(options as Parameters<Pawl["runs"]["bulk"]>[0]);
}

async function optionsOf(flags: Flags, { shell }: Session): Promise<object> {
  const { all, dryRun, reason, cascade, from, toVersion: version, signal } = flags;
  const payload = await readJson(flags.payload, "--payload", shell);
  const given = Object.entries({ all, dryRun, reason, cascade, from, version, signal, payload });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function describe(answer: BulkOperation | BulkPreview, what: string): string {
  if ("id" in answer) {
    return `operation ${answer.id}: ${what} ${plural(answer.counted, "run")}; follow it with: pawl bulk show ${answer.id}`;
  }
  const { count, runs } = answer;
  const first = runs.map(({ runId, name, status }) => `  ${runId} ${name} ${status}`);
  const more = count > runs.length ? ["  …"] : [];
  return [`dry run: ${what} would concern ${plural(count, "run")}`, ...first, ...more].join("\n");
}
