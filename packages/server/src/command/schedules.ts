/** `pawl schedules`: lists, shows, sets, pauses, resumes, triggers, removes and backfills schedules. */

import { type Command, Option } from "commander";
import type { CatchUp, Duration, Overlap, Schedule, ScheduleDetail } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { integer, pastDate, readJson } from "./terminal/input.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import type { Shell } from "./terminal/shell.js";
import { properties, table } from "./terminal/table.js";
import { compactJson, duration, moment, plural, prettyJson, printable, state } from "./terminal/text.js";

type Flags = ConnectionOptions & { readonly json?: true };

interface SetFlags extends Flags {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly every?: Duration;
  readonly start: string;
  readonly input?: string;
  readonly version?: number;
  readonly queue?: string;
  readonly priority?: number;
  readonly overlap?: Overlap;
  readonly catchUp?: CatchUp;
  readonly jitter?: Duration;
  readonly paused?: boolean;
}

export function addSchedules(program: Command, session: Session): void {
  const schedules = addGroup(program, session, {
    name: "schedules",
    description: "start runs by cron or at an interval",
    examples: [
      "pawl schedules list",
      `pawl schedules set nightly --cron "0 3 * * *" --time-zone Europe/Berlin --start cleanup`,
      "pawl schedules backfill nightly --from 7d",
    ],
  });
  addList(schedules, session);
  addShow(schedules, session);
  addSet(schedules, session);
  addPauseAndResume(schedules, session);
  addTrigger(schedules, session);
  addRemove(schedules, session);
  addBackfill(schedules, session);
}

function addList(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "list",
    description: "list the schedules with their next tick and what is wrong with them",
    examples: ["pawl schedules list", "pawl schedules list --json"],
  }).option("--json", "print JSON: { schedules }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const { shell } = session;
      const all = await withPawl(flags, (pawl) => pawl.schedules.list());
      if (flags.json === true) return shell.print(prettyJson({ schedules: all }));
      if (all.length === 0) return shell.print("no schedules");
      const rows = all.map((schedule) => [
        schedule.name,
        timingOf(schedule),
        schedule.definition,
        schedule.paused ? "paused" : moment(schedule.nextAt, shell),
        moment(schedule.lastAt, shell),
        schedule.lastStatus === null ? "" : state(schedule.lastStatus, shell.colors),
        printable(schedule.problem ?? ""),
      ]);
      shell.print(table(["SCHEDULE", "WHEN", "STARTS", "NEXT", "LAST", "STATUS", "PROBLEM"], rows, shell));
    }),
  );
}

function addShow(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "show",
    description: "show a schedule with its next five ticks",
    examples: ["pawl schedules show nightly"],
  })
    .argument("<schedule>", "the name of the schedule")
    .option("--json", "print JSON: the schedule");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: Flags) => {
      const schedule = await withPawl(flags, (pawl) => pawl.schedules.get(name));
      session.shell.print(flags.json === true ? prettyJson(schedule) : showOne(schedule, session.shell));
    }),
  );
}

function addSet(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "set",
    description: "set a schedule; the same content changes nothing",
    examples: [
      `pawl schedules set nightly --cron "0 3 * * *" --time-zone Europe/Berlin --start cleanup --input '{"days":30}'`,
      "pawl schedules set sync --every 15m --start sync --overlap cancel --jitter 1m",
    ],
  })
    .argument("<schedule>", "the name of the schedule")
    .requiredOption("--start <name>", "the definition to start")
    .option("--cron <expression>", 'a cron expression such as "0 3 * * *", or @daily')
    .option("--time-zone <zone>", "the IANA time zone of --cron (default: UTC)")
    .option("--every <duration>", "instead of --cron: an interval such as 15m")
    .option("--input <json>", "the input of each run: JSON, @file.json, or - for standard input")
    .option("--version <number>", "the version (default: the highest that is served)", integer)
    .option("--queue <queue>", "the queue (default: the definition's)")
    .option("--priority <number>", "lower numbers run first (default: the definition's)", integer)
    .addOption(
      new Option("--overlap <rule>", "while the last run is not terminal (default: skip)").choices([
        "skip",
        "allow",
        "cancel",
      ]),
    )
    .addOption(
      new Option("--catch-up <ticks>", "which missed ticks start a run (default: last)").choices([
        "last",
        "none",
        "all",
      ]),
    )
    .option("--jitter <duration>", "fire up to this long after each tick (default: 0)")
    .option("--paused", "pause it")
    .option("--no-paused", "resume it (default: as it is)")
    .option("--json", "print JSON: the schedule, and whether it was changed");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: SetFlags) => {
      const { cron, timeZone, every, start, version, queue, priority, overlap, catchUp, jitter } = flags;
      const input = await readJson(flags.input, "--input", session.shell);
      const options = { version, queue, priority };
      // Commander sets a flag that has a negation to true.
      const paused = command.getOptionValueSource("paused") === "cli" ? flags.paused : undefined;
      const set = await withPawl(flags, (pawl) =>
        pawl.schedules.set(name, {
          cron,
          timeZone,
          every,
          start,
          input,
          options,
          overlap,
          catchUp,
          jitter,
          paused,
        }),
      );
      if (flags.json === true) return session.shell.print(prettyJson(set));
      const what = set.changed ? "set the schedule" : "nothing changed in the schedule";
      session.shell.print(`${what} ${name}\n${showOne(set, session.shell)}`);
    }),
  );
}

function addPauseAndResume(schedules: Command, session: Session): void {
  const verbs = [
    ["pause", "start no more runs until resume", "paused"],
    ["resume", "go on; catch-up decides about the ticks that passed", "resumed"],
  ] as const;
  for (const [verb, description, done] of verbs) {
    const command = addCommand(schedules, session, {
      name: verb,
      description,
      examples: [`pawl schedules ${verb} nightly`],
    })
      .argument("<schedule>", "the name of the schedule")
      .option("--json", "print JSON: {}");
    addConnectionOptions(command).action(
      action(session, async (name: string, flags: Flags) => {
        await withPawl(flags, (pawl) => pawl.schedules[verb](name));
        session.shell.print(flags.json === true ? prettyJson({}) : `${done} the schedule ${name}`);
      }),
    );
  }
}

function addTrigger(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "trigger",
    description: "start the run of a schedule now, also if it is paused",
    examples: ["pawl schedules trigger nightly"],
  })
    .argument("<schedule>", "the name of the schedule")
    .option("--json", "print JSON: { runId }");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: Flags) => {
      const { runId } = await withPawl(flags, (pawl) => pawl.schedules.trigger(name));
      session.shell.print(flags.json === true ? prettyJson({ runId }) : `started run ${runId}`);
    }),
  );
}

function addRemove(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "remove",
    description: "remove a schedule; its runs go on",
    examples: ["pawl schedules remove nightly"],
  })
    .argument("<schedule>", "the name of the schedule")
    .option("--json", "print JSON: { removed }");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: Flags) => {
      const { removed } = await withPawl(flags, (pawl) => pawl.schedules.remove(name));
      const text = removed ? `removed the schedule ${name}` : `there was no schedule ${name}`;
      session.shell.print(flags.json === true ? prettyJson({ removed }) : text);
    }),
  );
}

function addBackfill(schedules: Command, session: Session): void {
  const command = addCommand(schedules, session, {
    name: "backfill",
    description: "start the runs of all ticks in a range; a tick that has a run gets no second one",
    examples: [
      "pawl schedules backfill nightly --from 7d",
      "pawl schedules backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
    ],
  })
    .argument("<schedule>", "the name of the schedule")
    .requiredOption(
      "--from <time>",
      "the first tick: ISO 8601, or a duration before now such as 7d",
      pastDate,
    )
    .option("--to <time>", "all ticks are before this time, in the same formats (default: now)", pastDate)
    .option("--json", "print JSON: { started, runs }");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: Flags & { readonly from: string; readonly to?: string }) => {
      const { from, to = new Date().toISOString() } = flags;
      const filled = await withPawl(flags, (pawl) => pawl.schedules.backfill(name, { from, to }));
      const { started, runs } = filled;
      const text = `started ${plural(started, "run")}; ${plural(runs.length - started, "tick")} had a run before`;
      session.shell.print(flags.json === true ? prettyJson(filled) : text);
    }),
  );
}

function timingOf({ cron, everyMs, timeZone }: Schedule): string {
  return cron === null ? `every ${duration(everyMs ?? 0)}` : `${cron} ${timeZone}`;
}

function showOne(schedule: ScheduleDetail, shell: Shell): string {
  const { lastRunId, lastStatus, jitterMs, offsetMs, version, definition } = schedule;
  const entries: [string, string][] = [
    ["schedule", schedule.name],
    ["when", timingOf(schedule)],
    ["starts", version === null ? definition : `${definition}@${version}`],
    ["input", compactJson(schedule.input)],
    ["overlap", schedule.overlap],
    ["catch-up", schedule.catchUp],
    ...(jitterMs === 0
      ? []
      : [["jitter", `${duration(offsetMs)} of ${duration(jitterMs)}`] as [string, string]]),
    ["paused", schedule.pausedAt === null ? "no" : `since ${moment(schedule.pausedAt, shell)}`],
    ["last run", lastRunId === null ? "none" : `${lastRunId} ${lastStatus ?? "deleted"}`],
    ["problem", printable(schedule.problem ?? "none")],
    ["next", schedule.next.map((at) => at.toISOString()).join("\n")],
  ];
  return properties(entries, shell);
}
