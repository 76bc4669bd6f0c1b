/**
 * How a worker reaches its runs, once that is opened: straight in Postgres, or through a server. The worker sees only this.
 * Made by `serve`.
 */

import type { BeatAddress } from "./open-beats.js";
import type { DatabaseState, WorkerStore } from "../store/store.js";
import type { ReadGauges } from "../observe/gauges.js";
import type { Hub } from "../local/hub.js";

export interface WorkerTransport {
  readonly store: WorkerStore;
  /** What this process tells itself about these runs. */
  readonly hub: Hub;
  /** Where to beat; null: nobody judges this worker by its beats, and it makes none. */
  readonly beats: BeatAddress | null;
  /** Whether it is for workers to end the claims of dead ones and to delete old runs; else the server does. */
  readonly sweeps: boolean;
  /** Reads what the metrics show of the database, where a worker can. */
  readonly gauges?: ReadGauges;
  /** What is to be known of the database when a worker registers; left out where the server looks itself. */
  state?(): Promise<DatabaseState>;
  /** How long a claim may be held back until there is work; null: claims answer at once, and have to be repeated. */
  readonly waitMs: number | null;
  /** Lets go of everything that was opened. Never waits long for calls in flight. */
  close(): Promise<void>;
}
