/**
 * The outcomes of steps as workers commit them, and the answers. A worker decides a transition; the
 * store writes it under the guard of the claim. Values are JSON text. Types only.
 */

import type { Claim, ClaimedRun, NewRun } from "./runs.js";

/**
 * The change that a step's outcome makes to its run. `state: null` keeps the stored state.
 * `consumed` and `shown` are the seqs of the signals that the step saw as awaited.
 */
export type Transition =
  /** Go to the next step and keep the claim. */
  | {
      readonly kind: "keep";
      readonly step: string;
      readonly state: string | null;
      readonly consumed: readonly number[];
    }
  /** Go to the next step and release the claim. */
  | {
      readonly kind: "next";
      readonly step: string;
      readonly state: string | null;
      readonly priority: number | null;
      /** undefined: unchanged. */
      readonly partitionKey: string | null | undefined;
      readonly rateLimit: string | null;
      readonly weight: number | null;
      /** undefined: unchanged. */
      readonly concurrency?: string | null | undefined;
      readonly consumed: readonly number[];
    }
  | {
      readonly kind: "retry";
      readonly step: string | null;
      readonly state: string | null;
      readonly delayMs: number;
      readonly error: string | null;
    }
  /** A workflow waits for a signal with one of these names, the end of a child, or this time. */
  | {
      readonly kind: "suspend";
      readonly names: readonly string[];
      /** JSON by name. */
      readonly matches: Readonly<Record<string, string>>;
      /** The workflow has seen all signals up to this seq, and none of them matched. */
      readonly after: number;
      /** As the store wrote it; null: no time. */
      readonly dueAt: string | null;
      /** The steps that wait, shown by `why`. */
      readonly steps: readonly string[];
    }
  | {
      readonly kind: "await";
      readonly step: string;
      readonly state: string | null;
      readonly names: readonly string[];
      /** JSON. */
      readonly match: string | null;
      /** null: without a timeout. */
      readonly delayMs: number | null;
      readonly shown: readonly number[];
    }
  | {
      readonly kind: "spawn";
      readonly step: string;
      readonly state: string | null;
      readonly children: readonly NewRun[];
      readonly consumed: readonly number[];
    }
  | { readonly kind: "done"; readonly step: string | null; readonly result: string }
  | { readonly kind: "stop"; readonly step: string | null; readonly error: string };

/** A transition, and the claim that guards it. */
export interface Commit {
  readonly runId: string;
  /** The queue of the run, so that workers learn when it is due again. */
  readonly queue?: string;
  readonly claimId: string;
  readonly turn: number;
  /** The seq of the last signal that the worker has read. */
  readonly inboxSeq: number;
  readonly parentId: string | null;
  /** The key that the claim holds. */
  readonly partitionKey: string | null;
  /**
   * If this frees the key: the claim for the next run in line, should the store hand it over at
   * once.
   */
  readonly next: Claim | null;
  readonly transition: Transition;
}

export type Verdict =
  /**
   * Committed. `uniqueLost`: the run re-entered its unique scope while another run held its key,
   * and lost the key. `inboxSeq`: the claim is kept, and the inbox has signals up to this seq that
   * the worker has not read. `handed`: the next run in line for the key, claimed as the commit
   * asked. `paused`: the claim was to be kept but has ended, because the run is paused.
   */
  | {
      readonly kind: "committed";
      readonly uniqueLost: boolean;
      readonly inboxSeq: number | null;
      readonly handed: ClaimedRun | null;
      readonly paused?: boolean;
    }
  /**
   * An earlier call committed it, and its answer was lost. `inboxSeq`: the last delivered signal.
   */
  | { readonly kind: "already"; readonly inboxSeq: number; readonly paused?: boolean }
  /** The claim has ended: nothing was written. */
  | { readonly kind: "stale" }
  /** An open transaction holds the run's lock: nothing was written, ask again later. */
  | { readonly kind: "busy" }
  /** The database refused the values: nothing was written, the claim is kept. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string };
