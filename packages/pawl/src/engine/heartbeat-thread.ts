/**
 * The heartbeat's thread: one connection of its own, one small call per interval, so that a step that keeps the main
 * thread busy cannot cost the worker its lease. Writes the time of each confirmed beat into shared memory, where the
 * main thread reads it even after a long block. Also run in the main loop where threads cannot start.
 */

import { parentPort, workerData } from "node:worker_threads";
import { type BeatAddress, type Beats, openBeats } from "../store/beats.js";
import { lowestClaimId } from "./claim-id.js";
import { monotonicMs } from "./monotonic.js";

export interface BeatOptions {
  readonly address: BeatAddress;
  readonly workerId: string;
  readonly intervalMs: number;
  /** One number: when, on the monotonic clock of the process, the last confirmed beat was sent (milliseconds). */
  readonly confirmed: SharedArrayBuffer;
}

/** What the database said at a beat. */
export interface ConfirmedBeat {
  readonly sentAtMs: number;
  /** Runs that this worker holds and that were cancelled. */
  readonly cancelled: Readonly<Record<string, string>>;
  /** Every ten seconds: the runs that this worker holds by claims from the id `since` on, with their claim ids. */
  readonly held: { readonly since: string; readonly claims: Readonly<Record<string, string>> } | null;
  /** The whole database is held. */
  readonly databaseHeld: boolean;
  /** The timeline that its server writes. */
  readonly timeline: string | null;
}

export type BeatReport =
  | { readonly kind: "alive"; readonly confirmed: ConfirmedBeat }
  /** The beat came after the lease had passed. */
  | { readonly kind: "late" }
  | { readonly kind: "failed"; readonly message: string };

const heldEveryMs = 10_000;
/** How long before the last question a claim may have been asked for that was made after it: longer than any call takes. */
const callMs = 45_000;

/** Beats until told to stop. */
export function beat(options: BeatOptions, report: (report: BeatReport) => void): { stop(): Promise<void> } {
  const { address, workerId, intervalMs } = options;
  const confirmed = new Float64Array(options.confirmed);
  const patienceMs = Math.max(250, intervalMs);
  let beats: Beats | null = null;
  let isStopped = false;
  let heldAtMs = monotonicMs();
  let heldSince = "0";
  let wake = (): void => {};

  const beatOnce = async (): Promise<void> => {
    beats ??= await openBeats(address, patienceMs);
    const sentAtMs = monotonicMs();
    const wantsHeld = sentAtMs - heldAtMs >= heldEveryMs;
    const since = wantsHeld ? heldSince : null;
    const { alive, cancelled, held, databaseHeld, timeline } = await beats.beat(workerId, since);
    if (wantsHeld) {
      heldAtMs = sentAtMs;
      heldSince = lowestClaimId(sentAtMs - callMs);
    }
    if (!alive) {
      report({ kind: "late" });
      return;
    }
    confirmed[0] = sentAtMs;
    const confirmedHeld = held === null || since === null ? null : { since, claims: held };
    report({
      kind: "alive",
      confirmed: { sentAtMs, cancelled, held: confirmedHeld, databaseHeld, timeline },
    });
  };

  const loop = async (): Promise<void> => {
    while (!isStopped) {
      // A little sooner, so that with the call itself a beat comes at least as often as was asked for.
      let waitMs = intervalMs * 0.9;
      try {
        await beatOnce();
      } catch (error) {
        const broken = beats;
        beats = null;
        broken?.end().catch(() => {});
        report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
        waitMs = Math.min(intervalMs, 250);
      }
      if (isStopped) break;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await beats?.end().catch(() => {});
  };

  const running = loop();
  return {
    stop: async () => {
      isStopped = true;
      wake();
      await running;
    },
  };
}

if (parentPort !== null && isBeatOptions(workerData)) {
  const port = parentPort;
  const beating = beat(workerData, (report) => port.postMessage(report));
  port.once("message", () => {
    void beating.stop().then(() => port.close());
  });
}

function isBeatOptions(data: unknown): data is BeatOptions {
  return typeof data === "object" && data !== null && "confirmed" in data && "workerId" in data;
}
