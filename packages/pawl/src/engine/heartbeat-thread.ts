/**
 * The heartbeat's thread: one connection of its own, one small call per interval, so that a step that keeps the main
 * thread busy cannot cost the worker its lease. Writes the time of each confirmed beat into shared memory, where the
 * main thread reads it even after a long block. Also run in the main loop where threads cannot start.
 */

import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";
import { connectionOptions, types } from "../store/postgres/database.js";
import { quoteName } from "../store/postgres/literals.js";
import { lowestClaimId } from "./claim-id.js";
import { monotonicMs } from "./monotonic.js";

export interface BeatOptions {
  readonly url: string;
  readonly schema: string;
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
  const { url, schema, workerId, intervalMs } = options;
  const confirmed = new Float64Array(options.confirmed);
  const patienceMs = Math.max(250, intervalMs);
  const text = `select * from ${quoteName(schema)}.beat($1, $2, $3)`;
  let client: pg.Client | null = null;
  let isStopped = false;
  let heldAtMs = monotonicMs();
  let heldSince = "0";
  let wake = (): void => {};

  const connect = async (): Promise<pg.Client> => {
    const fresh = new pg.Client({
      ...connectionOptions(url),
      connectionTimeoutMillis: patienceMs,
      query_timeout: patienceMs,
    });
    // A lost connection shows in the next beat.
    fresh.on("error", () => {});
    await fresh.connect();
    return fresh;
  };

  const beatOnce = async (): Promise<void> => {
    client ??= await connect();
    const sentAtMs = monotonicMs();
    const wantsHeld = sentAtMs - heldAtMs >= heldEveryMs;
    const since = wantsHeld ? heldSince : null;
    const { rows } = await client.query({ text, values: [0, workerId, since], types });
    const [row] = rows as { alive: boolean; cancelled: string | null; held: string | null }[];
    if (wantsHeld) {
      heldAtMs = sentAtMs;
      heldSince = lowestClaimId(sentAtMs - callMs);
    }
    if (row?.alive !== true) {
      report({ kind: "late" });
      return;
    }
    confirmed[0] = sentAtMs;
    const cancelled = row.cancelled === null ? {} : (JSON.parse(row.cancelled) as Record<string, string>);
    const held =
      row.held === null || since === null
        ? null
        : { since, claims: JSON.parse(row.held) as Record<string, string> };
    report({ kind: "alive", confirmed: { sentAtMs, cancelled, held } });
  };

  const loop = async (): Promise<void> => {
    while (!isStopped) {
      // A little sooner, so that with the call itself a beat comes at least as often as was asked for.
      let waitMs = intervalMs * 0.9;
      try {
        await beatOnce();
      } catch (error) {
        const broken = client;
        client = null;
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
    await client?.end().catch(() => {});
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
