/**
 * The work of the heartbeat thread, one for all workers of the process: one small call per worker and
 * interval. A step that blocks the main thread cannot cost a worker its lease. The thread writes the
 * time of each confirmed heartbeat into shared memory, where the main thread reads it even after a
 * long block. `thread-main.ts` runs this in the thread. The main loop does if no thread can start.
 */

import { HeartbeatPool } from "../store/heartbeat-pool.js";
import { lowestClaimId } from "../values/claim-id.js";
import { monotonicMs } from "../values/monotonic-clock.js";
import { type HeartbeatAddress, lineKey, openHeartbeat } from "./connection.js";

/** Without a confirmed heartbeat, a lease counts as lost after this part of it. */
export const lostAfter = 0.8;

export interface HeartbeatOptions {
  readonly address: HeartbeatAddress;
  readonly workerId: string;
  readonly intervalMs: number;
  readonly leaseMs: number;
  /**
   * One number: when the last confirmed heartbeat was sent, on the monotonic clock of the process;
   * 0: none was.
   */
  readonly confirmed: SharedArrayBuffer;
}

/** The answer of the database to a heartbeat. */
export interface ConfirmedHeartbeat {
  readonly sentAtMs: number;
  /** Cancelled runs that this worker holds. */
  readonly cancelled: Readonly<Record<string, string>>;
  /**
   * Every ten seconds: the runs that this worker holds by claims from the id `since` on, with their
   * claim ids.
   */
  readonly held: { readonly since: string; readonly claims: Readonly<Record<string, string>> } | null;
  /** The whole database is held. */
  readonly databaseHeld: boolean;
  /** The timeline that its server writes. */
  readonly timeline: string | null;
  /** Why this release can no longer work with the schema. */
  readonly schemaProblem: string | null;
}

export type HeartbeatReport =
  | { readonly kind: "alive"; readonly confirmed: ConfirmedHeartbeat }
  /** The heartbeat arrived after the lease had passed. */
  | { readonly kind: "late" }
  | { readonly kind: "failed"; readonly message: string };

/** A command to the thread; `key` stands for one worker id. */
export type Command =
  | {
      readonly kind: "begin";
      readonly key: number;
      readonly options: HeartbeatOptions;
      readonly isRegistered: boolean;
    }
  | { readonly kind: "registered" | "end"; readonly key: number }
  /** The answer to a request for a password; null: there is none. */
  | { readonly kind: "password"; readonly request: number; readonly password: string | null }
  /** End all, and then the thread. */
  | { readonly kind: "stop" };

/** A message from the thread. */
export type Message =
  | { readonly kind: "ready" }
  | { readonly kind: "stopped" }
  /** A new connection needs the password that this function of the main loop returns. */
  | { readonly kind: "password"; readonly asks: number; readonly request: number }
  | { readonly kind: "report"; readonly key: number; readonly report: HeartbeatReport }
  | { readonly kind: "ended"; readonly key: number };

const heldEveryMs = 10_000;
/**
 * A claim whose id is older than the last list may have been made after it: no call takes longer
 * than this.
 */
const callMs = 45_000;
const maxTimeoutMs = 10_000;
const retryMs = 250;

interface Beating {
  /** The worker's row is committed: from now on it counts if a heartbeat does not find it. */
  registered(): void;
  stop(): Promise<void>;
}

/**
 * Sends heartbeats for one worker id until told to stop. It may begin before the worker's row
 * exists.
 */
function beat(
  options: HeartbeatOptions,
  lines: HeartbeatPool,
  report: (report: HeartbeatReport) => void,
  wasRegistered: boolean,
): Beating {
  const { workerId, intervalMs, leaseMs } = options;
  const confirmed = new Float64Array(options.confirmed);
  // A heartbeat that hangs leaves time for another before the lease counts as lost.
  const leftMs = (leaseMs * lostAfter - intervalMs) / 2;
  const timeoutMs = Math.min(maxTimeoutMs, Math.max(retryMs, leftMs));
  let isRegistered = wasRegistered;
  let isStopped = false;
  let heldAtMs = monotonicMs();
  let heldSince = "0";
  let wake: (() => void) | null = null;
  let isHurried = false;

  const beatOnce = async (): Promise<void> => {
    await lines.use(timeoutMs, async (line) => {
      // Stopped meanwhile: a heartbeat would only keep its old claims for longer.
      if (isStopped) return;
      const mustBeFound = isRegistered;
      const sentAtMs = monotonicMs();
      const wantsHeld = sentAtMs - heldAtMs >= heldEveryMs;
      const since = wantsHeld ? heldSince : null;
      const answer = await line.beat(workerId, since, timeoutMs);
      const { alive, cancelled, held, databaseHeld, timeline, schemaProblem } = answer;
      if (!alive) {
        if (mustBeFound) report({ kind: "late" });
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
        confirmed: { sentAtMs, cancelled, held: confirmedHeld, databaseHeld, timeline, schemaProblem },
      });
    });
  };

  const loop = async (): Promise<void> => {
    while (!isStopped) {
      // A little sooner, so that with the call itself the interval is kept.
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

/**
 * Sends the heartbeats of all worker ids it is told. Those of one address share its connections.
 */
export function beatAll(tell: (message: Message) => void): (command: Command) => Promise<void> {
  const all = new Map<number, { readonly beating: Beating; leave(): Promise<void> }>();
  const addresses = new Map<string, { readonly lines: HeartbeatPool; users: number }>();
  const requests = new Map<number, (password: string | null) => void>();
  let lastRequest = 0;

  const ask = async (asks: number): Promise<string> => {
    const request = ++lastRequest;
    const answer = new Promise<string | null>((resolve) => requests.set(request, resolve));
    tell({ kind: "password", asks, request });
    const password = await answer;
    if (password === null) throw new Error("the function that returns the password has failed");
    return password;
  };
  const answer = (request: number, password: string | null): void => {
    requests.get(request)?.(password);
    requests.delete(request);
  };

  const begin = (key: number, options: HeartbeatOptions, isRegistered: boolean): void => {
    const { address } = options;
    const addressKey = lineKey(address);
    const shared = addresses.get(addressKey) ?? {
      lines: new HeartbeatPool((timeoutMs) => openHeartbeat(address, timeoutMs, ask)),
      users: 0,
    };
    addresses.set(addressKey, shared);
    shared.users++;
    const report = (one: HeartbeatReport): void => tell({ kind: "report", key, report: one });
    all.set(key, {
      beating: beat(options, shared.lines, report, isRegistered),
      leave: async () => {
        if (--shared.users > 0) return;
        addresses.delete(addressKey);
        await shared.lines.end();
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
  return async (command) => {
    if (command.kind === "begin") begin(command.key, command.options, command.isRegistered);
    else if (command.kind === "registered") all.get(command.key)?.beating.registered();
    else if (command.kind === "password") answer(command.request, command.password);
    else if (command.kind === "end") await end(command.key);
    else await Promise.all([...all.keys()].map(end));
  };
}
