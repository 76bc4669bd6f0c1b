/**
 * Schedules at the boundary: set, read, pause, remove, and fire those that are due. Times are those
 * of the database clock. Each call is one transaction and answers after it is committed.
 * `postgres/` implements it. Types only.
 */

import type { ErrorRecord } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import type { Phase, Status } from "../values/phase.js";
import type { Actor } from "./client-store.js";
import type { Claimable, NewRun, StartedRun } from "./runs.js";

/** The rule for a tick while the last run is not terminal. */
export type Overlap = "skip" | "allow" | "cancel";
/** Which of the ticks that were missed start a run. */
export type CatchUp = "last" | "none" | "all";

interface StoredTiming {
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timeZone: string;
}

/** A schedule to set. */
export interface NewSchedule extends StoredTiming {
  readonly name: string;
  readonly run: NewRun;
  readonly jitterMs: number;
  /** How long after each tick it fires, less than `jitterMs`. */
  readonly offsetMs: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  /** null: leave it as it is. */
  readonly paused: boolean | null;
}

/** A schedule, as the database has it. */
export interface StoredSchedule extends StoredTiming {
  readonly name: string;
  /** The run that it starts; `input` is left out in a page. */
  readonly run: Pick<NewRun, "name" | "version" | "queue"> & { readonly input?: string };
  readonly jitterMs: number;
  readonly offsetMs: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly setAt: Date;
  readonly pausedAt: Date | null;
  readonly nextAt: Date;
  /** How long ago it should have fired; negative: not due yet; null: paused. */
  readonly lateMs: number | null;
  readonly lastAt: Date | null;
  readonly lastRunId: string | null;
  /** null: there is none, or retention has deleted it. */
  readonly lastRun: { readonly phase: Phase; readonly error: ErrorRecord | null } | null;
  readonly skippedAt: Date | null;
  /** Ticks in a row that could not start a run, and the error of the last one. */
  readonly failures: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Whether a live worker serves its definition. */
  readonly isServed: boolean;
}

/** The facts that decide whether a schedule has a problem. */
export type ScheduleHealth = Pick<
  StoredSchedule,
  "name" | "run" | "lateMs" | "lastRunId" | "lastRun" | "failures" | "error" | "isServed"
>;

/** A schedule, as `schedules.list` returns it. */
export interface Schedule extends StoredTiming {
  readonly name: string;
  /** The name of the definition that it starts. */
  readonly definition: string;
  /** null: the version that workers serve at the tick. */
  readonly version: number | null;
  /** null: the queue of the definition. */
  readonly queue: string | null;
  readonly jitterMs: number;
  /** It fires so long after each tick. 0 without jitter. */
  readonly offsetMs: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly paused: boolean;
  readonly pausedAt: Date | null;
  /** When `set` changed it last. */
  readonly setAt: Date;
  /** Its next tick; null while it is paused. */
  readonly nextAt: Date | null;
  /** The last tick that started a run, and that run. */
  readonly lastAt: Date | null;
  readonly lastRunId: string | null;
  /** null: there is no last run, or retention has deleted it. */
  readonly lastStatus: Status | null;
  /** The last tick that was skipped, because the run before it was not terminal. */
  readonly skippedAt: Date | null;
  /** Its problem as a sentence; null: it has none. */
  readonly problem: string | null;
}

/** A schedule, as `schedules.set` and `schedules.get` return it. */
export interface ScheduleDetail extends Schedule {
  /** The input of its runs. */
  readonly input: Json;
  /** Its next five ticks. */
  readonly next: readonly Date[];
}

/** A schedule whose next tick is due. */
export interface DueSchedule extends StoredTiming {
  readonly name: string;
  readonly offsetMs: number;
  readonly catchUp: CatchUp;
  readonly nextAt: Date;
}

/** Fire a schedule: start the runs of these ticks, if its next tick is still `expected`. */
export interface Firing {
  readonly name: string;
  readonly expected: Date;
  /** One tick obeys `overlap`. Several are ticks that were missed: each starts its run. */
  readonly ticks: readonly Date[];
  readonly next: Date;
}

/** A run that a tick has started; not `created`: the tick had its run before. */
export interface TickRun {
  readonly at: Date;
  readonly runId: string;
  readonly created: boolean;
}

/** The definition that a schedule starts. */
export interface ScheduledDefinition {
  readonly definition: string;
  readonly version: number | null;
  /** null: the queue of the definition. */
  readonly queue: string | null;
}

export type FiredSchedule =
  | (ScheduledDefinition & {
      readonly verdict: "fired" | "skipped";
      readonly runs: readonly TickRun[];
      /** The runs that were cancelled for it, with their definitions. */
      readonly cancelled: readonly { readonly runId: string; readonly name: string }[];
      readonly lost: readonly { readonly runId: string; readonly name: string; readonly version: number }[];
      readonly claimable: readonly Claimable[];
    })
  /** It waits for its next tick. */
  | { readonly verdict: "failed"; readonly code: string; readonly message: string }
  /** It is still due. */
  | { readonly verdict: "error"; readonly code: string; readonly message: string }
  /** `busy`: its last run or a key was locked. `gone`: another process fires it, or it was changed. */
  | { readonly verdict: "busy" | "gone" };

/** With `by`, each change is a line of the action log, written with it. */
/** Knows when a worker has something to do, runs as well as schedules. */
export interface NextDueReader {
  /** Milliseconds until a worker has something to do; 0 or less: now; null: nothing is due. */
  nextDue(
    queues: readonly string[],
    served: readonly { readonly name: string; readonly version: number }[],
  ): Promise<number | null>;
}

export interface ScheduleStore {
  /** Answers whether that changed anything. `nextAt` counts if it is new or its timing changes. */
  setSchedule(schedule: NewSchedule, nextAt: Date, by: Actor | null): Promise<boolean>;
  /** The schedule of this name, or (null) a page in order of names; `now` is the database's time. */
  schedules(query: {
    readonly name: string | null;
    readonly after: string | null;
    readonly limit: number;
  }): Promise<{ readonly now: Date; readonly schedules: StoredSchedule[] }>;
  /** Whether there is such a schedule. */
  pauseSchedule(name: string, paused: boolean, by: Actor | null): Promise<boolean>;
  /** Whether there was such a schedule. */
  removeSchedule(name: string, by: Actor | null): Promise<boolean>;
  /** null: there is no such schedule. */
  triggerSchedule(
    name: string,
    suffix: string,
    by: Actor | null,
  ): Promise<(ScheduledDefinition & Pick<StartedRun, "runId" | "created"> & { readonly at: Date }) | null>;
  /** Starts the runs of these ticks, all of `[from, to)`; null: there is no such schedule. */
  backfillSchedule(
    name: string,
    range: { readonly ticks: readonly Date[]; readonly from: Date; readonly to: Date },
    by: Actor | null,
  ): Promise<(ScheduledDefinition & { readonly runs: readonly TickRun[] }) | null>;
  /**
   * Up to `limit` due schedules after the first `skip`; without any, `dueMs` says when the next one
   * is (null: none).
   */
  dueSchedules(
    limit: number,
    skip: number,
  ): Promise<{ readonly now: Date; readonly dueMs: number | null; readonly due: readonly DueSchedule[] }>;
  /** One answer for each, in their order. */
  fireSchedules(firings: readonly Firing[]): Promise<FiredSchedule[]>;
}
