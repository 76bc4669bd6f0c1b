/**
 * How a worker reaches its runs: directly in Postgres, or through a server. The worker sees only
 * this. Made by `serve`.
 */

import type { HeartbeatAddress } from "../heartbeat/connection.js";
import type { Hub } from "../local/hub.js";
import type { ReadGauges } from "../observe/gauges.js";
import type { ScheduleTransport } from "../store/client-transport.js";
import type { DatabaseState, ScheduleStore, WorkerStore } from "../store/store.js";

export interface WorkerTransport {
  readonly store: WorkerStore;
  /** Hints between the clients and workers of this process. */
  readonly hub: Hub;
  /** Where to send heartbeats; null: this worker needs none. */
  readonly heartbeat: HeartbeatAddress | null;
  /**
   * Whether the worker reclaims runs of dead workers and deletes old runs; else the server does.
   */
  readonly sweeps: boolean;
  /** Sets the schedules that the worker declares. */
  readonly schedules: Pick<ScheduleTransport, "set">;
  /** Where the worker fires schedules that are due; left out where the server does. */
  readonly firing?: Pick<ScheduleStore, "dueSchedules" | "fireSchedules">;
  /** Reads the gauges of the database, where a worker can. */
  readonly gauges?: ReadGauges;
  /** The state of the database when a worker registers; left out where the server checks it. */
  state?(): Promise<DatabaseState>;
  /**
   * How long a claim may be held open until there is work; null: claims answer at once, and the
   * worker polls.
   */
  readonly waitMs: number | null;
  /** Closes everything that was opened. Never waits long for calls in flight. */
  close(): Promise<void>;
}
