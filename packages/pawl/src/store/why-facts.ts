/** The facts from which `api/why.ts` finds why a run makes no progress. Types only. */

import type { ErrorRecord } from "../values/error-record.js";
import type { Json } from "../values/json-types.js";
import type { Pause } from "./views.js";
import type { Phase } from "../values/phase.js";

/** The answer of the SQL function `why`. */
export interface WhyFacts {
  readonly name: string;
  readonly version: number;
  readonly phase: Phase;
  readonly step: string | null;
  readonly queue: string | null;
  readonly attempt: number;
  readonly crashes: number;
  readonly hold: number;
  readonly databaseHeld: boolean;
  readonly throttled: boolean;
  readonly rateLimit: string | null;
  readonly partitionKey: string | null;
  /** Past it the run fails. */
  readonly deadlineAt: string | null;
  /** Until its first claim, another start with this key moves its time, at most to `debounceUntil`. */
  readonly debounceKey: string | null;
  readonly debounceUntil: string | null;
  readonly now: string;
  readonly eligibleAt: string | null;
  readonly completedAt: string | null;
  readonly error: ErrorRecord | null;
  /** The idempotency key of a run that a schedule started, or of the first of its chain of reruns. */
  readonly schedule: string | null;
  /** The newest run that repeats it. */
  readonly rerunAs: string | null;
  readonly awaits: {
    readonly names?: string[];
    readonly match?: Json;
    readonly since?: string;
    /** Of a workflow: the steps that wait, and the members that a signal must have, by name. */
    readonly steps?: string[];
    readonly matches?: Readonly<Record<string, Json>>;
  } | null;
  readonly childrenPending: number;
  readonly inbox: Readonly<Record<string, number>>;
  readonly unfinished: readonly string[];
  readonly worker: string | null;
  readonly leaseUntil: string | null;
  readonly workerAlive: boolean | null;
  readonly served: boolean;
  readonly registered: boolean;
  readonly servedVersions: readonly number[];
  readonly queueServed: boolean;
  readonly holder: { readonly runId: string; readonly worker: string | null; readonly phase: Phase } | null;
  readonly first: string | null;
  /** Its concurrency limit, as `limit` or `limit:key`. */
  readonly concurrency: string | null;
  readonly slots: {
    /** null: the limit has no `concurrent` any longer. */
    readonly concurrent: number | null;
    readonly held: number;
    /** The first ten. */
    readonly holders: readonly string[];
    /** How many runs are before it in line, at most 1,000. */
    readonly ahead: number;
  } | null;
  readonly paused: (Omit<Pause, "since"> & { readonly since: string }) | null;
}
