/**
 * The schedules that a worker declares (`schedules` of `serve`): types and checks. `serve` refuses
 * wrong timings at the call; the worker encodes inputs when it sets the schedules.
 */

import type { AnyDefinition } from "../define/definition.js";
import { InvalidOption } from "../values/errors.js";
import { checkOptions, isObject } from "../values/options.js";
import { show } from "../values/show.js";
import { type CheckedTimes, checkTimes, scheduleNames, type ScheduleTimes } from "./options.js";

/** The schedules that `serve` sets, by name. */
export type DeclaredSchedules = Readonly<Record<string, DeclaredSchedule>>;

export interface DeclaredSchedule extends ScheduleTimes {
  /** The definition to start, or its name. */
  readonly start: AnyDefinition | string;
  readonly input?: unknown;
}

/** A declared schedule: its timing is checked, except for the meaning of its cron expression. */
export interface CheckedDeclaration {
  readonly times: CheckedTimes;
  readonly options: DeclaredSchedule;
}

/** Checks the schedules of `serve`, except for their inputs. */
export function checkDeclared(given: unknown): readonly CheckedDeclaration[] {
  if (given === undefined) return [];
  if (!isObject(given)) {
    throw new InvalidOption(
      `schedules must be an object such as { nightly: { cron: "0 3 * * *", start: cleanup } }, not ${show(given)}`,
    );
  }
  return Object.entries(given).map(([name, options]) => {
    const times = checkTimes(name, checkOptions(options, scheduleNames, `the schedule "${name}"`));
    return { times, options: options as DeclaredSchedule };
  });
}
