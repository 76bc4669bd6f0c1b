/**
 * Runs, steps, reasons and messages as users read them: decoded values and dates. Both transports
 * of a client answer with these, and `index.ts` exports them. Types only.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { Tags } from "../define/start-options.js";
import type { ScheduleTick } from "../define/schedule-key.js";
import type { ErrorRecord } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import type { Phase, Status } from "../values/phase.js";
import type { StepKind } from "./journal.js";

/** A run, as `runs.get` and `runs.list` return it. */
export interface Run {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  /** null for a run started by name, until a worker registers its definition. */
  readonly kind: AnyDefinition["kind"] | null;
  readonly status: Status;
  readonly phase: Phase;
  readonly step: string | null;
  readonly attempt: number;
  readonly queue: string;
  readonly priority: number;
  readonly input: Json;
  readonly state: Json | null;
  readonly output: Json | null;
  readonly error: ErrorRecord | null;
  readonly parentId: string | null;
  readonly idempotencyKey: string | null;
  /** The business key to signal and find it by. */
  readonly correlationKey: string | null;
  readonly tags: Tags;
  /** The schedule that started it, and the tick; null: no schedule did. */
  readonly schedule: ScheduleTick | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  readonly eligibleAt: Date | null;
  readonly expiresAt: Date | null;
  /** Past it the run fails with `DeadlineExceeded`. */
  readonly deadlineAt: Date | null;
  /** The run that it repeats; null: it is no rerun. */
  readonly rerunOf: string | null;
  /** The newest run that repeats it; null: none. */
  readonly rerunAs: string | null;
  /** The first run of its chain of reruns; its own id if it is no rerun. */
  readonly originRunId: string;
  /** The OpenTelemetry trace of the program that started it; null: that had none. */
  readonly traceId: string | null;
  /** The pause of the run, its queue or its definition; null: none of them is paused. */
  readonly paused: Pause | null;
}

/** Why no worker begins a step of a run: somebody has paused it, its queue or its definition. */
export interface Pause {
  readonly scope: "run" | "queue" | "definition";
  readonly by: string;
  readonly reason: string | null;
  readonly since: Date;
}

export interface Page {
  /** Newest first. */
  readonly runs: Run[];
  /** Pass it to `runs.list` to get the next page; null on the last page. */
  readonly cursor: string | null;
}

/** A step of a workflow run. */
export interface Step {
  readonly name: string;
  readonly kind: StepKind;
  readonly status: "pending" | "completed" | "failed";
  /** Its last attempt, counted from 0. */
  readonly attempt: number;
  readonly output: Json | null;
  /** The error of its last failed attempt. */
  readonly error: ErrorRecord | null;
  /** The run that `step.invoke` started. */
  readonly childId: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** When a pending step continues by itself: the end of a sleep, a timeout, the next attempt. */
  readonly dueAt: Date | null;
}

/** Some of the steps of a run. */
export interface StepPage {
  readonly steps: Step[];
  /** For the next page; null on the last page. */
  readonly cursor: string | null;
}

/** Why a run makes no progress. `reason` tells the kinds apart. */
export type WhyReason =
  /** It has ended. */
  | {
      readonly reason: "ended";
      readonly status: "completed" | "failed" | "cancelled";
      readonly at: Date;
      readonly error: ErrorRecord | null;
      /** The newest run that repeats it; null: none. */
      readonly rerunAs: string | null;
    }
  /** A live worker executes it. */
  | { readonly reason: "executing"; readonly worker: string; readonly leaseUntil: Date }
  /** Its worker died or sends no heartbeat: the run becomes runnable again when the lease ends. */
  | { readonly reason: "worker_dead"; readonly worker: string; readonly leaseUntil: Date | null }
  /** It waits for one of these signals. `inbox` counts the signals it has received, by name. */
  | {
      readonly reason: "awaiting_signal";
      readonly names: readonly string[];
      readonly match: Json | null;
      readonly since: Date;
      /** When the wait times out; null: never. */
      readonly until: Date | null;
      readonly inbox: Readonly<Record<string, number>>;
    }
  /** It is a suspended workflow, and these steps wait. */
  | {
      readonly reason: "suspended";
      readonly steps: readonly string[];
      /** The signals that it waits for, and the members that each must have, by name. */
      readonly names: readonly string[];
      readonly matches: Readonly<Record<string, Json>>;
      /** The runs that it waits for. */
      readonly children: readonly string[];
      readonly since: Date;
      /**
       * When it continues by itself: the end of a sleep, a timeout, the next attempt; null: never.
       */
      readonly until: Date | null;
      readonly inbox: Readonly<Record<string, number>>;
    }
  /** It waits for its children to end. `children` names the first ten that have not ended. */
  | {
      readonly reason: "awaiting_children";
      readonly unfinished: number;
      readonly children: readonly string[];
      readonly since: Date;
    }
  /** Somebody has paused it, its queue or its definition. */
  | {
      readonly reason: "paused";
      readonly scope: Pause["scope"];
      readonly by: string;
      /** The reason that they gave. */
      readonly given: string | null;
      readonly since: Date;
    }
  /** An operator holds this run, or the whole database. */
  | { readonly reason: "held"; readonly what: "run" | "database" }
  /**
   * The database failed to claim it, so Pawl set it aside and the other runs of its queue continue.
   */
  | { readonly reason: "set_aside"; readonly error: ErrorRecord | null }
  /** No live worker serves this version of its definition. */
  | {
      readonly reason: "unserved";
      readonly name: string;
      readonly version: number;
      /** The versions that live workers serve. */
      readonly servedVersions: readonly number[];
      /** Whether a worker has ever served it. */
      readonly registered: boolean;
    }
  /** Workers serve its definition, but none of them serves its queue. */
  | { readonly reason: "queue_unserved"; readonly queue: string }
  /** Its rate limit postponed it. */
  | { readonly reason: "throttled"; readonly rateLimit: string; readonly until: Date }
  /** It is debounced: another start with its key moves its time, at most to `latest`. */
  | {
      readonly reason: "debounced";
      readonly key: string;
      readonly until: Date;
      /** null: without a limit. */
      readonly latest: Date | null;
    }
  /** It is not due yet: a delay, a retry, or the pause after a crash. */
  | {
      readonly reason: "not_due";
      readonly until: Date;
      readonly attempt: number;
      readonly crashes: number;
      readonly error: ErrorRecord | null;
    }
  /** All slots of its concurrency limit are held, or given to runs before it in line. */
  | {
      readonly reason: "limit_full";
      /** `limit`, or `limit:key`. */
      readonly concurrency: string;
      /** How many runs of the key may execute at once. */
      readonly concurrent: number;
      /** How many execute now, and the first ten of them, without those that the token may not see. */
      readonly held: number;
      readonly holders: readonly string[];
      /** How many runs are before it in line, at most 1,000. */
      readonly ahead: number;
    }
  /** Another run holds its partition key, or is before it in line for the key. */
  | {
      readonly reason: "key_taken";
      readonly partitionKey: string;
      /** null: the token of the caller may not see that run. */
      readonly holder: string | null;
      /**
       * The worker of the run that holds the key; null: that run is first in line and not claimed
       * yet, or hidden.
       */
      readonly worker: string | null;
    }
  /** A worker can claim it at any moment. All workers may be busy. */
  | { readonly reason: "claimable"; readonly queue: string; readonly since: Date };

/** A reason, with the run that it is about. */
export type ExplainedRun = WhyReason & {
  readonly runId: string;
  readonly phase: Phase;
  /** The reason in one sentence. */
  readonly text: string;
};

/** The answer of `why`. */
export type Why = ExplainedRun & {
  /** Past it the run fails with `DeadlineExceeded`. Missing: it has none, or has ended. */
  readonly deadlineAt?: Date;
  /** The schedule that started it, or the first run of its chain of reruns. Missing: none has. */
  readonly schedule?: ScheduleTick;
};

/** A message that `queues.receive` returned. */
export interface Message<Body = Json> {
  readonly id: string;
  readonly body: Body;
  /** Proves to `ack` and `extend` that you received the message. */
  readonly receipt: string;
  /** How often it was received, including this time. */
  readonly receives: number;
  readonly group: string | null;
  readonly sentAt: Date;
  /** In a dead-letter queue: the queue that it came from. */
  readonly from: string | null;
}
