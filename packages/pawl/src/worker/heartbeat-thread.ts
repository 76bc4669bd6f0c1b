/**
 * The heartbeat's thread, one for all workers of the process: one small call per worker and interval, so that a step that
 * keeps the main thread busy cannot cost a worker its lease. Writes the time of each confirmed beat into shared memory,
 * where the main thread reads it even after a long block. Also run in the main loop where threads cannot start.
 * Ordered about by `heartbeat-host.ts`.
 */

import { parentPort, workerData } from "node:worker_threads";
import { BeatLines } from "../store/beat-lines.js";
import { type BeatAddress, openBeats } from "./open-beats.js";
import { lowestClaimId } from "../values/claim-id.js";
import { monotonicMs } from "../values/monotonic-clock.js";

/** The part of a lease after which it counts as lost, if no beat was confirmed. */
export const lostAfter = 0.8;

export interface BeatOptions {
  readonly address: BeatAddress;
  readonly workerId: string;
  readonly intervalMs: number;
  readonly leaseMs: number;
  /** One number: when, on the monotonic clock of the process, the last confirmed beat was sent (milliseconds); 0: none was. */
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

/** What the thread is told; `key` is that of one worker id. */
export type Order =
  | {
      readonly kind: "begin";
      readonly key: number;
      readonly options: BeatOptions;
      readonly isRegistered: boolean;
    }
  | { readonly kind: "registered" | "end"; readonly key: number }
  /** End all, and then the thread. */
  | { readonly kind: "stop" };

/** What the thread tells. */
export type Notice =
  | { readonly kind: "ready" }
  | { readonly kind: "report"; readonly key: number; readonly report: BeatReport }
  | { readonly kind: "ended"; readonly key: number };

/** How a thread knows that it is this one. */
export const threadMark = "pawl-heartbeat";

const heldEveryMs = 10_000;
/** How long before the last question a claim may have been asked for that was made after it: longer than any call takes. */
const callMs = 45_000;
const maxPatienceMs = 10_000;
const retryMs = 250;

interface Beating {
  /** The worker's row is there: from now on it counts if a beat does not find it. */
  registered(): void;
  stop(): Promise<void>;
}

/** Beats for one worker id until told to stop. It may begin before the row is there, so that no time is lost when it is. */
function beat(
  options: BeatOptions,
  lines: BeatLines,
  report: (report: BeatReport) => void,
  isRegisteredBefore: boolean,
): Beating {
  const { workerId, intervalMs, leaseMs } = options;
  const confirmed = new Float64Array(options.confirmed);
  // A beat that hangs leaves time for another before the lease counts as lost.
  const leftMs = (leaseMs * lostAfter - intervalMs) / 2;
  const patienceMs = Math.min(maxPatienceMs, Math.max(retryMs, leftMs));
  let isRegistered = isRegisteredBefore;
  let isStopped = false;
  let heldAtMs = monotonicMs();
  let heldSince = "0";
  let wake: (() => void) | null = null;
  let isHurried = false;

  const beatOnce = async (): Promise<void> => {
    await lines.use(patienceMs, async (line) => {
      // Given up meanwhile: a beat would only keep its old claims for longer.
      if (isStopped) return;
      const wasRegistered = isRegistered;
      const sentAtMs = monotonicMs();
      const wantsHeld = sentAtMs - heldAtMs >= heldEveryMs;
      const since = wantsHeld ? heldSince : null;
      const { alive, cancelled, held, databaseHeld, timeline } = await line.beat(workerId, since, patienceMs);
      if (!alive) {
        if (wasRegistered) report({ kind: "late" });
        return;
      }
      isRegistered = true;
      if (wantsHeld) {
        heldAtMs = sentAtMs;
        heldSince = lowestClaimId(sentAtMs - callMs);
      }
      confirmed[0] = sentAtMs;
      const confirmedHeld = held === null || since === null ? null : { since, claims: held };
      report({
        kind: "alive",
        confirmed: { sentAtMs, cancelled, held: confirmedHeld, databaseHeld, timeline },
      });
    });
  };

  const loop = async (): Promise<void> => {
    while (!isStopped) {
      // A little sooner, so that with the call itself a beat comes at least as often as was asked for.
      let waitMs = intervalMs * 0.9;
      try {
        await beatOnce();
      } catch (error) {
        if (isRegistered) {
          report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
        }
        waitMs = Math.min(intervalMs, retryMs) * (0.75 + Math.random() / 2);
      }
      if (isStopped) break;
      if (!isHurried) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, waitMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wake = null;
      }
      isHurried = false;
    }
  };

  const running = loop();
  const hurry = (): void => {
    isHurried = true;
    wake?.();
  };
  return {
    registered: () => {
      if (isRegistered) return;
      isRegistered = true;
      hurry();
    },
    stop: async () => {
      isStopped = true;
      hurry();
      await running;
    },
  };
}

/** Beats for all whom it is told to; those of one address share its lines. Answers how to tell it. */
export function beatAll(tell: (notice: Notice) => void): (order: Order) => Promise<void> {
  const all = new Map<number, { readonly beating: Beating; leave(): Promise<void> }>();
  const places = new Map<string, { readonly lines: BeatLines; users: number }>();

  const begin = (key: number, options: BeatOptions, isRegistered: boolean): void => {
    const { address } = options;
    const where = JSON.stringify(address);
    const place = places.get(where) ?? {
      lines: new BeatLines((patienceMs) => openBeats(address, patienceMs)),
      users: 0,
    };
    places.set(where, place);
    place.users++;
    const report = (one: BeatReport): void => tell({ kind: "report", key, report: one });
    all.set(key, {
      beating: beat(options, place.lines, report, isRegistered),
      leave: async () => {
        if (--place.users > 0) return;
        places.delete(where);
        await place.lines.end();
      },
    });
  };
  const end = async (key: number): Promise<void> => {
    const one = all.get(key);
    all.delete(key);
    await one?.beating.stop();
    await one?.leave();
    tell({ kind: "ended", key });
  };
  return async (order) => {
    if (order.kind === "begin") begin(order.key, order.options, order.isRegistered);
    else if (order.kind === "registered") all.get(order.key)?.beating.registered();
    else if (order.kind === "end") await end(order.key);
    else await Promise.all([...all.keys()].map(end));
  };
}

if (parentPort !== null && workerData === threadMark) {
  const port = parentPort;
  const obey = beatAll((notice) => port.postMessage(notice));
  port.on("message", (order: Order) => {
    void obey(order).then(() => {
      if (order.kind === "stop") port.close();
    });
  });
  port.postMessage({ kind: "ready" } satisfies Notice);
}
