/** How long things took, in the fault tests: printed, and compared with the bars where the machine is not to blame. */

import type { Evidence } from "./invariants.js";
import type { Kill } from "./fleet.js";
import { wait } from "./wait.js";

/** The value that so many percent do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}

/** How long after the death of their worker steps were entered again; those that crashed for the first time, since others are put off. */
export async function recoveriesMs(ledger: Evidence["ledger"], kills: readonly Kill[]): Promise<number[]> {
  const rows = await ledger<{ ms: number }>(
    `select extract(epoch from again.at - k.at)::float8 * 1000 as ms
     from public.ledger again
     cross join lateral (select l.pid from public.ledger l where l.run_id = again.run_id and l.id < again.id
       order by l.id desc limit 1) before
     join unnest($1::int[], $2::timestamptz[]) k(pid, at) on k.pid = before.pid and k.at < again.at
     where again.attempt = 1 and again.pid <> before.pid`,
    [kills.map(({ pid }) => pid), kills.map(({ at }) => at.toISOString())],
  );
  return rows.map(({ ms }) => ms);
}

/**
 * Watches how long after the death of their worker runs are free to be claimed again. Told at the end: one time for each of the dead that
 * held any.
 */
export function watchRecoveries(sql: Evidence["sql"], kills: readonly Kill[]): () => Promise<number[]> {
  const everyMs = 50;
  const holding = new Set<Kill>();
  const took = new Map<Kill, number>();
  let isOver = false;
  const look = async (): Promise<void> => {
    const askedMs = Date.now();
    const rows = await sql<{ id: string }>(
      "select distinct locked_by as id from runs where locked_by is not null",
    );
    for (const kill of kills) {
      if (kill.at.getTime() > askedMs || took.has(kill)) continue;
      if (rows.some(({ id }) => id.includes(`-${kill.pid}-`))) holding.add(kill);
      else took.set(kill, Date.now() - kill.at.getTime());
    }
  };
  const watching = (async () => {
    while (!isOver) {
      await look();
      await wait(everyMs);
    }
  })();
  watching.catch(() => {}); // told at the end
  return async () => {
    isOver = true;
    await watching;
    return [...holding].map((kill) => took.get(kill) ?? Infinity);
  };
}

/** Watches how late this process gets to do what is due: other work on the machine, which makes everything late. */
export function watchLag(): () => number {
  const everyMs = 20;
  let longestMs = 0;
  let beforeMs = performance.now();
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - beforeMs - everyMs);
    beforeMs = performance.now();
  }, everyMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    return longestMs;
  };
}
