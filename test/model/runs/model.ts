/**
 * The words of the sequential model: its runs, the commands that change them one at a time, and the answers that it
 * predicts. Times are milliseconds on the engine's clock. Ids are given in order of start, from 1. `run-model.ts`
 * applies the commands; the tests that compare it with the database translate them.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

type Status =
  | "runnable"
  | "executing"
  | "awaiting_signal"
  | "awaiting_children"
  | "done"
  | "failed"
  | "cancelled";

export interface Signal {
  readonly seq: number;
  readonly name: string;
  readonly payload: Json;
}

/** What a run waits for, or what the step that it enters was waiting for. */
export type Awaits =
  | {
      readonly kind: "signal";
      readonly names: readonly string[];
      readonly match: Json | null;
      /** How far the inbox went when a claim resolved the wait; null: none has. */
      readonly upTo: number | null;
    }
  | { readonly kind: "children"; readonly ids: readonly number[] };

export interface Run {
  readonly id: number;
  readonly status: Status;
  /** Its definition. */
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly partitionKey: string | null;
  readonly step: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly eligibleAt: number;
  readonly holder: string | null;
  readonly claimId: string | null;
  readonly turn: number;
  readonly awaits: Awaits | null;
  readonly shown: readonly number[];
  readonly timedOut: boolean;
  /** Unconsumed signals, oldest first. */
  readonly inbox: readonly Signal[];
  readonly inboxSeq: number;
  readonly dedupKeys: readonly string[];
  readonly parentId: number | null;
  /** Children of the last spawn that have not ended. */
  readonly childrenPending: number;
  readonly retentionMs: number;
  readonly expiresAt: number | null;
}

export interface Model {
  readonly now: number;
  /** By id; swept ones are gone. */
  readonly runs: ReadonlyMap<number, Run>;
  readonly lastId: number;
  /** Registered workers, and whether their lease runs. */
  readonly workers: ReadonlyMap<string, "live" | "lapsed">;
}

export interface NewRun {
  readonly name?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly partitionKey?: string | null;
  readonly delayMs?: number;
  readonly retentionMs?: number;
  readonly step?: string;
}

/** `shown` are the seqs that the claim answered as awaited; they are consumed by `next`, `keep` and `spawn`. */
export type Outcome =
  | {
      readonly kind: "next";
      readonly step: string;
      readonly shown: readonly number[];
      readonly priority?: number;
      /** null drops the key; left out keeps it. */
      readonly partitionKey?: string | null;
    }
  | { readonly kind: "keep"; readonly step: string; readonly shown: readonly number[] }
  | { readonly kind: "retry"; readonly delayMs: number }
  | {
      readonly kind: "await";
      readonly names: readonly string[];
      readonly step: string;
      readonly shown: readonly number[];
      readonly timeoutMs?: number;
      readonly match?: Json;
    }
  | {
      readonly kind: "spawn";
      readonly step: string;
      readonly shown: readonly number[];
      readonly children: readonly NewRun[];
    }
  | { readonly kind: "done" }
  | { readonly kind: "stop" };

/** A claim for the next run in line for the key that a commit frees. */
interface NextClaim {
  readonly worker: string;
  readonly claimId: string;
}

export type Command =
  /** With a claim, the run starts already claimed. */
  | {
      readonly op: "start";
      readonly run: NewRun;
      readonly claim?: { readonly worker: string; readonly claimId: string };
    }
  | { readonly op: "register"; readonly worker: string }
  | {
      readonly op: "claim";
      readonly worker: string;
      readonly claimId: string;
      readonly queue: string;
      readonly limit: number;
    }
  | {
      readonly op: "commit";
      readonly run: number;
      readonly claimId: string;
      readonly turn: number;
      readonly outcome: Outcome;
      /** The seq of the last signal that the worker has read. */
      readonly inboxSeq?: number;
      readonly next?: NextClaim;
    }
  | { readonly op: "release"; readonly run: number; readonly claimId: string }
  | {
      readonly op: "signal";
      readonly run: number;
      readonly name: string;
      readonly payload: Json;
      readonly dedupKey?: string;
    }
  | { readonly op: "cancel"; readonly run: number; readonly cascade?: boolean }
  /** A worker's lease passes: it has died, or its beats do not get through. */
  | { readonly op: "lapse"; readonly worker: string }
  | { readonly op: "beat"; readonly worker: string }
  | { readonly op: "reap" }
  /** Keys that have blocked runs although nobody holds them: one call at a time, there are none. */
  | { readonly op: "repair" }
  /** The engine's clock moves. */
  | { readonly op: "advance"; readonly ms: number }
  | { readonly op: "sweep" };

export interface ClaimedRun {
  readonly id: number;
  readonly step: string;
  readonly priority: number;
  readonly partitionKey: string | null;
  readonly parentId: number | null;
  readonly attempt: number;
  readonly crashes: number;
  readonly timedOut: boolean;
  readonly inboxSeq: number;
  readonly awaited: readonly Signal[];
  readonly inbox: readonly Signal[];
  /** Of the spawn that led into this step, in order. */
  readonly children: readonly { readonly id: number; readonly status: Status }[];
}

export type Answer =
  | { readonly op: "start"; readonly id: number }
  | {
      readonly op: "claim";
      readonly runs: readonly ClaimedRun[];
      /** Whether the limit ended it. */
      readonly more: boolean;
      /** If not: milliseconds until the next run of the queue is due, null if there is none. */
      readonly dueMs: number | null;
    }
  | {
      readonly op: "commit";
      readonly verdict: "committed" | "already" | "stale";
      /** The claim is kept and the inbox has more than the worker has read, up to this seq. */
      readonly inboxSeq?: number;
      readonly handed?: ClaimedRun;
    }
  | { readonly op: "release"; readonly isReleased: boolean }
  | { readonly op: "signal"; readonly verdict: "delivered" | "duplicate" | "not_found" | "ended" | "full" }
  | {
      readonly op: "cancel";
      readonly verdict: "cancelled" | "already" | "ended" | "not_found";
      readonly cancelled: readonly number[];
    }
  | {
      readonly op: "beat";
      readonly isAlive: boolean;
      /** Of the worker's runs those that were cancelled, and all of them. */
      readonly cancelled: readonly number[];
      readonly held: readonly number[];
    }
  | { readonly op: "reap"; readonly reaped: number }
  | { readonly op: "sweep"; readonly swept: readonly number[] }
  | { readonly op: "register" | "lapse" | "repair" | "advance" };

export interface Applied {
  readonly model: Model;
  readonly answer: Answer;
}

export const isTerminal = ({ status }: Run): boolean =>
  status === "done" || status === "failed" || status === "cancelled";

/** The model with these runs put in place of those with the same ids. */
export const put = (model: Model, ...runs: readonly Run[]): Model => ({
  ...model,
  runs: new Map([...model.runs, ...runs.map((run) => [run.id, run] as const)]),
});
