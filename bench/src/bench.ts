/**
 * The interface of every bench: it measures on a fresh database and returns figures. A figure is
 * one line of the table and one key of the JSON object. The order of a bench's figures is the order
 * of both.
 */

import type { PartName } from "./scale-parts.js";
import type { Profiling } from "./profiling.js";
import type { BenchDatabase } from "./server.js";

export type BenchName =
  | "jobs"
  | "machines"
  | "workflows"
  | "sleepers"
  | "latency"
  | "signals"
  | "timers"
  | "schedules"
  | "keys"
  | "children"
  | "redrive"
  | "limits"
  | "across"
  | "others"
  | "remote"
  | "server"
  | "counting"
  | "queues"
  | "scale"
  | "sustained"
  | "list"
  | "dashboard"
  | "plans";

export interface Figure {
  /** The key in the JSON object. */
  readonly key: string;
  readonly label: string;
  /** null: cannot be measured here. */
  readonly value: number | null;
  readonly unit: string;
  /** Show it as a share of the raw limit. */
  readonly ofLimit?: boolean;
}

export interface BenchRequest {
  readonly database: BenchDatabase;
  readonly count: number;
  readonly concurrency: number;
  readonly quick: boolean;
  /** Of `scale`: only this curve. */
  readonly part: PartName | undefined;
  /** Of `sustained`: how long; undefined: as long as the bench thinks best. */
  readonly minutes: number | undefined;
  readonly profiling: Profiling;
  /** Aborted when the user interrupts the bench. */
  readonly signal: AbortSignal;
}

export interface Bench {
  readonly defaults: { readonly count: number; readonly quickCount: number; readonly concurrency: number };
  measure(request: BenchRequest): Promise<Figure[]>;
}
