/**
 * The options of `schedules.set` and of `schedules` of `serve`: types, defaults and checks. Pure but
 * for the schema of the input. Used by the client, the worker and the server.
 */

import type { AnyDefinition, DefinitionOf, InputOf, StartTarget } from "../define/definition.js";
import type { StartOptions } from "../define/start-options.js";
import { newRun } from "../run/new-run.js";
import type { CatchUp, NewSchedule, Overlap } from "../store/schedule-store.js";
import type { NewRun } from "../store/runs.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkScheduleName } from "../values/names.js";
import { checkOneOf, checkOptions, type GivenOptions, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import { checkCron } from "./cron-text.js";
import { checkTimeZone } from "./time-zone.js";

/** The options of `start` that a schedule may give. The schedule sets the rest. */
export type ScheduledStartOptions = Omit<StartOptions, "at" | "idempotencyKey" | "debounce">;

/** When and how a schedule fires. */
export interface ScheduleTimes {
  /**
   * A cron expression: minute, hour, day of month, month, day of week, with seconds first if it has
   * six fields. Names, ranges, steps, `L` and shortcuts such as "@daily" are allowed.
   */
  readonly cron?: string | undefined;
  /** The IANA time zone of `cron`, such as "Europe/Berlin". Default "UTC". */
  readonly timeZone?: string | undefined;
  /** Instead of `cron`: an interval of at least a second. Ticks are multiples of it since 1970. */
  readonly every?: Duration | undefined;
  /**
   * If the last run is not terminal at a tick: "skip" the tick (default), "allow" another run, or
   * "cancel" the last one.
   */
  readonly overlap?: Overlap | undefined;
  /**
   * Which missed ticks start a run after a downtime or a pause: the "last" one (default), "none", or
   * "all", at most 1,000, oldest first.
   */
  readonly catchUp?: CatchUp | undefined;
  /** Fire up to this long after each tick. How long depends on the name only. Default 0. */
  readonly jitter?: Duration | undefined;
  /** Pause it or resume it. Default: as it is; a new schedule is not paused. */
  readonly paused?: boolean | undefined;
  /** The options of each start. */
  readonly options?: ScheduledStartOptions | undefined;
}

/** A schedule: when it fires, and the definition and input that it starts. */
export type ScheduleOptions<Target extends StartTarget = StartTarget> = ScheduleTimes & {
  /** The definition to start, or its name. */
  readonly start: Target;
} & InputMember<InputOf<DefinitionOf<Target>>>;

type InputMember<Input> = undefined extends Input
  ? { readonly input?: Input | undefined }
  : { readonly input: Input };

const timeNames = ["cron", "timeZone", "every", "overlap", "catchUp", "jitter", "paused"] as const;
export const scheduleNames = [...timeNames, "start", "input", "options"] as const;
const refused = ["at", "idempotencyKey", "debounce"] as const;
const overlaps: readonly Overlap[] = ["skip", "allow", "cancel"];
const catchUps: readonly CatchUp[] = ["last", "none", "all"];
const shortestMs = 1_000;
const longestJitterMs = 86_400_000;

/** A checked schedule, except for the run that it starts. */
export type CheckedTimes = Omit<NewSchedule, "run">;

/** The schedule for these arguments. `what` names its options in errors. */
export async function checkSchedule(
  name: unknown,
  options: unknown,
  { what, maxBytes }: { what: string; maxBytes: number },
): Promise<NewSchedule> {
  const given = checkOptions(options, scheduleNames, what);
  const times = checkTimes(name, given);
  const run = await checkScheduledRun(given, maxBytes);
  return { ...times, run };
}

/** Checks when a schedule fires, except for the meaning of its cron expression. */
export function checkTimes(name: unknown, given: GivenOptions<(typeof timeNames)[number]>): CheckedTimes {
  const checkedName = checkScheduleName(name);
  const { overlap = "skip", catchUp = "last", jitter = 0, paused = null } = given;
  if (paused !== null && typeof paused !== "boolean") {
    throw new InvalidOption(`paused must be true or false, not ${show(paused)}`);
  }
  const jitterMs = toMilliseconds(jitter, "jitter");
  if (jitterMs > longestJitterMs) {
    throw new InvalidOption(`jitter must be at most a day, not ${show(jitter)}`);
  }
  return {
    name: checkedName,
    ...checkTiming(given),
    jitterMs,
    offsetMs: jitterMs === 0 ? 0 : hashOf(checkedName) % jitterMs,
    overlap: checkOneOf(overlap, "overlap", overlaps),
    catchUp: checkOneOf(catchUp, "catchUp", catchUps),
    paused,
  };
}

function checkTiming({
  cron,
  every,
  timeZone,
}: GivenOptions<"cron" | "every" | "timeZone">): Pick<NewSchedule, "cron" | "everyMs" | "timeZone"> {
  if ((cron === undefined) === (every === undefined)) {
    const both = cron === undefined ? "neither" : "both";
    throw new InvalidOption(
      `a schedule takes cron or every, and this one has ${both}; give one, such as cron: "0 3 * * *" or every: "15m"`,
    );
  }
  if (every !== undefined) {
    if (timeZone !== undefined) {
      throw new InvalidOption("timeZone is for cron; an interval (every) is the same in all time zones");
    }
    const everyMs = toMilliseconds(every, "every");
    if (everyMs >= shortestMs) return { cron: null, everyMs, timeZone: "UTC" };
    throw new InvalidOption(`every must be at least 1s, not ${show(every)}`);
  }
  return { cron: checkCron(cron), everyMs: null, timeZone: checkTimeZone(timeZone ?? "UTC") };
}

async function checkScheduledRun(
  { start, input, options = {} }: GivenOptions<"start" | "input" | "options">,
  maxBytes: number,
): Promise<NewRun> {
  refuseOwnOptions(options);
  return newRun(start as AnyDefinition | string, input, options, { maxBytes, of: "the schedule" });
}

/** The schedule itself decides about these options of `start`. */
export function refuseOwnOptions(options: unknown): void {
  if (!isObject(options)) return;
  const found = refused.find((name) => options[name] !== undefined);
  if (found === undefined) return;
  throw new InvalidOption(
    `a schedule decides itself when its runs start, and by which key: leave ${found} out of its options`,
  );
}

/** FNV-1a: the same in every process and release. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) {
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  }
  return hash;
}
