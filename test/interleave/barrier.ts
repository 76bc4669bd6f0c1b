/**
 * Two operations, one in the middle of the other: the first runs inside an open transaction and keeps its locks, the
 * second is sent on another connection, and only when that one is known to wait for the first, or has answered, does the first
 * end. Nothing here sleeps: PostgreSQL says who waits for whom.
 */

import type { Connection } from "./connections.js";

/** How the first one's transaction ends: after the second one waits or has answered, or only after it has answered. */
export type End = "commits" | "rolls back" | "lingers";

export interface Barrier {
  readonly first: Connection;
  readonly second: Connection;
  /** Sees who waits. */
  readonly observer: Connection;
}

export interface Interleaved<First, Second> {
  readonly first: First;
  readonly second: Second;
  /** Whether the second one had to wait for the first. */
  readonly waited: boolean;
}

export async function interleave<First, Second>(
  barrier: Barrier,
  end: End,
  operations: { first: () => Promise<First>; second: () => Promise<Second> },
): Promise<Interleaved<First, Second>> {
  await barrier.first.query("begin");
  const first = await operations.first();
  let isAnswered = false;
  const second = operations.second().finally(() => (isAnswered = true));
  second.catch(() => {});
  let waited = false;
  while (!isAnswered) {
    if (await isBlocked(barrier)) {
      waited = true;
      if (end !== "lingers") break;
    }
  }
  await barrier.first.query(end === "rolls back" ? "rollback" : "commit");
  return { first, second: await second, waited };
}

async function isBlocked({ first, second, observer }: Barrier): Promise<boolean> {
  const [row] = await observer.query<{ blocked: boolean }>(
    `select wait_event_type = 'Lock' and $2 = any (pg_blocking_pids(pid)) as blocked
     from pg_stat_activity where pid = $1`,
    [second.pid, first.pid],
  );
  return row?.blocked === true;
}
