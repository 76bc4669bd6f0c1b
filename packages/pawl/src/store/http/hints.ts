/**
 * Hints between the clients and workers of one process. A transport through a server sends and
 * receives them; `local/hub.ts` passes them on. A lost hint only costs a poll.
 */

import type { EndedRun } from "../client-store.js";

export interface Hints {
  /** A signal arrived in the inbox of this run. */
  delivered(runId: string): void;
  /** This run is cancelled, durably. */
  cancel(runId: string, reason: string | undefined): void;
  /** Calls `tell` if the run ends in this process. Returns a function that takes it back. */
  onEnd(runId: string, tell: (ended: EndedRun) => void): () => void;
}
