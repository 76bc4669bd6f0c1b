/**
 * Runs as both kinds of callers of the store know them: the clients that start runs and the workers
 * that claim them. Values are JSON text, encoded and decoded by the callers. Types only.
 */

import type { Json } from "../values/json-types.js";
import type { Phase } from "../values/phase.js";
import type { StoredStep } from "./journal.js";

/** A run to start. */
export interface NewRun {
  readonly name: string;
  /** null: the run is started by name, and the store takes the version that workers serve. */
  readonly version: number | null;
  /**
   * null: the run is started by name. The store then takes the kind from the definition, and also
   * the queue, priority and retention if they are null.
   */
  readonly kind: string | null;
  readonly queue: string | null;
  readonly priority: number | null;
  readonly input: string;
  readonly step: string | null;
  readonly delayMs: number | null;
  readonly at: Date | null;
  readonly retentionMs: number | null;
  readonly idempotencyKey: string | null;
  readonly uniqueKey: Uint8Array | null;
  readonly uniqueScope: readonly Phase[] | null;
  readonly partitionKey: string | null;
  /** `limit`, or `limit:key`. */
  readonly rateLimit: string | null;
  readonly weight: number | null;
  /** The trace of its spans, as a `traceparent`; null: a trace of its own. */
  readonly trace: string | null;
  /** Insert the run already claimed, with the claim of the call. */
  readonly direct: boolean;
  /** The options that few runs have; null: none of them. */
  readonly options: RareOptions | null;
}

/** The options of a start that few runs have. They travel as one JSON text, so others cost nothing. */
export interface RareOptions {
  /** Missing: a child takes those of its parent. */
  readonly tags?: Readonly<Record<string, string>>;
  /** From when the run may begin. */
  readonly timeoutMs?: number;
  readonly debounce?: {
    readonly key: string;
    readonly delayMs: number;
    readonly maxDelayMs?: number;
  };
  readonly correlationKey?: string;
  /** `limit`, or `limit:key`. */
  readonly concurrency?: string;
}

export interface StartedRun {
  readonly runId: string;
  readonly created: boolean;
  readonly phase: Phase;
  /**
   * The run that holds the idempotency key while `runId` holds the unique key: nothing was started.
   */
  readonly conflict: string | null;
  /**
   * It was started by a name that no worker has ever registered. `nearest`: the one that was
   * perhaps meant.
   */
  readonly unregistered?: { readonly nearest: string | null } | undefined;
}

/** A worker's claim. The id is random and new for every call that claims. */
export interface Claim {
  readonly workerId: string;
  readonly claimId: string;
}

/** A run that a worker has claimed, with all that the worker needs to execute it. */
export interface ClaimedRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly step: string | null;
  readonly priority: number;
  readonly attempt: number;
  readonly crashes: number;
  readonly parentId: string | null;
  readonly partitionKey: string | null;
  /** The wait before this step ended by its timeout. */
  readonly timedOut: boolean;
  /** How many children the spawn before this step had; null: there was no spawn. */
  readonly children: number | null;
  /** The seq of the last delivered signal. */
  readonly inboxSeq: number;
  /** The signals in the inbox; null: too many for this answer, read them page by page. */
  readonly inbox: readonly StoredSignal[] | null;
  /** JSON; only present while there is no state. */
  readonly input: string | null;
  readonly state: string | null;
  /** The journal of a workflow; null: too large for this answer, read it page by page. */
  readonly journal: readonly StoredStep[] | null;
  /** The names of the signals in a workflow's inbox; null: too many to list. */
  readonly waiting: readonly string[] | null;
  readonly uniqueLost: boolean;
  /** When it was started, by the database clock. */
  readonly startedMs: number;
  readonly trace: string | null;
  /** Facts that few runs have; null: none. */
  readonly extra: ClaimExtra | null;
}

/** Facts about a claimed run that few runs have. */
export interface ClaimExtra {
  /** The idempotency key of a run that a schedule started. */
  readonly schedule?: string | undefined;
  readonly tags?: Readonly<Record<string, string>>;
  /** Milliseconds until its deadline, at the time of the claim. */
  readonly deadlineMs?: number;
  /** The first run of its chain of reruns. */
  readonly originId?: string | undefined;
}

/** Facts about a stored run that few runs have. */
export interface RunExtra {
  /** The first run of its chain of reruns. */
  readonly originId?: string;
  /** Of a rerun: the idempotency key of the first run, if a schedule started it. */
  readonly schedule?: string;
  /** The run that it repeats. */
  readonly rerunOf?: string;
  /** The newest run that repeats it. */
  readonly rerunAs?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly correlationKey?: string;
  readonly deadlineAt?: string;
  /** The trace context of its starter, as a `traceparent`. */
  readonly trace?: string;
}

/** A signal in an inbox. */
export interface StoredSignal {
  readonly seq: number;
  readonly name: string;
  readonly payload: Json;
  readonly receivedAt: Date;
  /** The await before this step asked for it. */
  readonly matched: boolean;
}

/**
 * Runs of a queue have become claimable. None of them comes before this point in the order of
 * claims.
 */
export interface Claimable {
  readonly queue: string;
  readonly priority: number;
  readonly microseconds: number;
}

/**
 * A limit. Its rate: how many tokens per period, and how many at most at once; null: it has none.
 * Its slots: how many runs of a key execute at once; null: any number.
 */
export interface StoredLimit {
  readonly name: string;
  readonly allowed: number | null;
  readonly periodMs: number | null;
  readonly burst: number | null;
  readonly concurrent: number | null;
}
