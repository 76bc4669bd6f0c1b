/**
 * The idempotency key of a run that a schedule started: `schedule/<name>/<time>`, and one more part
 * if `trigger` started it. SQL `schedule_key` writes it; nobody else may use such a key. Pure.
 */

import { InvalidOption } from "../values/errors.js";
import { show } from "../values/show.js";

/** The schedule that started a run, and the tick: the time in its cron expression or interval. */
export interface ScheduleTick {
  readonly name: string;
  /** For a run of `schedules.trigger`: when it was triggered. */
  readonly at: Date;
}

const prefix = "schedule/";

/** The tick that a run belongs to; null: no schedule started it. */
export function readScheduleKey(idempotencyKey: string | null): ScheduleTick | null {
  if (idempotencyKey === null || !idempotencyKey.startsWith(prefix)) return null;
  const [, name = "", time = ""] = idempotencyKey.split("/");
  const at = new Date(time);
  return name === "" || Number.isNaN(at.getTime()) ? null : { name, at };
}

/** Refuses the idempotency keys of schedules. */
export function checkFreeKey(idempotencyKey: string): string {
  if (!idempotencyKey.startsWith(prefix)) return idempotencyKey;
  throw new InvalidOption(
    `idempotencyKey must not begin with "${prefix}", which is reserved for the runs of schedules; not ${show(idempotencyKey)}`,
  );
}
