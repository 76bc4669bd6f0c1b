/**
 * Pauses of runs, queues and definitions: the calls of a client, and their answers. Types only.
 */

import type { Phase } from "../values/phase.js";
import type { Actor } from "./client-store.js";
import type { Claimable } from "./runs.js";

/** The person who pauses, and the reason. `by` null: the transport knows. */
export interface PauseRequest {
  readonly by: string | null;
  readonly reason: string | null;
}

/** A queue; or a definition: one version of it, or (null) all. */
export interface PauseTarget {
  readonly scope: "queue" | "definition";
  readonly name: string;
  readonly version: number | null;
}

/** A paused queue or definition. */
export interface StoredPause extends PauseTarget {
  readonly by: string;
  readonly reason: string | null;
  readonly since: Date;
}

/** The answer for one run. */
export interface PauseAnswer {
  readonly verdict: "changed" | "already" | "ended" | "not_found";
  readonly phase: Phase | null;
}

/** The same for several runs in one call. `busy`: another transaction has the run locked. */
export interface PausedRuns {
  readonly runs: readonly {
    readonly runId: string;
    readonly verdict: PauseAnswer["verdict"] | "busy";
    readonly phase: Phase | null;
    readonly name: string | null;
  }[];
  readonly claimable: readonly Claimable[];
}

/** The calls of the store. With `actor`, each change is a line of the action log, written with it. */
export interface PauseStore {
  pauseRuns(
    runIds: readonly string[],
    request: PauseRequest & { readonly by: string },
    actor?: Actor,
  ): Promise<PausedRuns>;
  resumeRuns(runIds: readonly string[], actor?: Actor): Promise<PausedRuns>;
  /** Answers whether that is new. */
  addPause(
    target: PauseTarget,
    request: PauseRequest & { readonly by: string },
    actor?: Actor,
  ): Promise<boolean>;
  /** `still`: a version is still paused, because its whole definition is. */
  removePauses(target: PauseTarget, actor?: Actor): Promise<{ changed: boolean; still: boolean }>;
  pauses(): Promise<StoredPause[]>;
}

/** The same as the client calls it. */
export interface PauseTransport {
  pauseRun(runId: string, request: PauseRequest): Promise<PauseAnswer>;
  resumeRun(runId: string): Promise<PauseAnswer>;
  pause(target: PauseTarget, request: PauseRequest): Promise<{ changed: boolean }>;
  resume(target: PauseTarget): Promise<{ changed: boolean; still: boolean }>;
  list(): Promise<StoredPause[]>;
}
