/**
 * The server's time while the bench works: time per statement (also inside functions, if the server
 * has pg_stat_statements, as the throw-away one has), time per function, how many updates stayed
 * HOT, and the waits of the engine's sessions, sampled. Used only with `--profile`, because it
 * costs time.
 */

import type pg from "pg";
import type { BenchDatabase } from "./server.js";

const sampleMs = 10;
const longestStatement = 90;

/** Does the work and answers with its result and a report on the server. */
export async function profileServer<T>(
  database: BenchDatabase,
  work: () => Promise<T>,
): Promise<{ result: T; lines: string[] }> {
  const { observer } = database;
  const hasStatements = await resetStatistics(observer);
  const sampling = sampleWaits(observer);
  const result = await work();
  const waits = await sampling.stop();
  await observer.query("select pg_stat_force_next_flush()");
  const lines = [
    ...(hasStatements
      ? await statements(observer)
      : ["time by statement: no pg_stat_statements on this server"]),
    ...(await functions(observer)),
    ...(await updates(observer)),
    ...waits,
  ];
  return { result, lines };
}

/** Begins to count anew. False if statements cannot be seen. */
async function resetStatistics(observer: pg.Client): Promise<boolean> {
  await observer.query("select pg_stat_reset()");
  try {
    await observer.query("create extension if not exists pg_stat_statements");
    await observer.query("select pg_stat_statements_reset()");
    return true;
  } catch {
    return false;
  }
}

async function statements(observer: pg.Client): Promise<string[]> {
  const { rows } = await observer.query<{
    ms: number;
    calls: number;
    rows: number;
    wal: number;
    text: string;
  }>(
    `select total_exec_time as ms, calls::float8, rows::float8, wal_bytes::float8 as wal,
       left(regexp_replace(query, '\\s+', ' ', 'g'), $1) as text
     from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
     order by total_exec_time desc limit 15`,
    [longestStatement],
  );
  return [
    "time by statement (a function's time includes what it calls):",
    ...rows.map(
      ({ ms, calls, rows: touched, wal, text }) =>
        `${ms.toFixed(0).padStart(8)} ms ${String(calls).padStart(7)} calls ${(ms / calls).toFixed(2).padStart(8)} ms/call ` +
        `${String(touched).padStart(8)} rows ${(wal / 1024 / 1024).toFixed(1).padStart(7)} MB WAL  ${text}`,
    ),
  ];
}

async function functions(observer: pg.Client): Promise<string[]> {
  const { rows } = await observer.query<{ name: string; calls: number; total: number; self: number }>(
    `select funcname as name, calls::float8, total_time as total, self_time as self
     from pg_stat_user_functions where schemaname = 'pawl' order by total_time desc limit 15`,
  );
  return [
    "time by function:",
    ...rows.map(
      ({ name, calls, total, self }) =>
        `${total.toFixed(0).padStart(8)} ms ${String(calls).padStart(7)} calls ${(total / calls).toFixed(2).padStart(8)} ms/call ` +
        `${self.toFixed(0).padStart(8)} ms self  ${name}`,
    ),
  ];
}

async function updates(observer: pg.Client): Promise<string[]> {
  const { rows } = await observer.query<{ updates: number; hot: number; pages: string; indexes: string }>(
    `select n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as hot,
       pg_size_pretty(pg_table_size(relid)) as pages, pg_size_pretty(pg_indexes_size(relid)) as indexes
     from pg_stat_user_tables where schemaname = 'pawl' and relname = 'runs'`,
  );
  return rows.map(
    ({ updates: all, hot, pages, indexes }) =>
      `updates of runs: ${all}, HOT ${((100 * hot) / Math.max(all, 1)).toFixed(0)} %; table ${pages}, indexes ${indexes}`,
  );
}

/** Samples the state of each active session of the engine every few milliseconds. */
function sampleWaits(observer: pg.Client): { stop(): Promise<string[]> } {
  const stopping = new AbortController();
  const seen = new Map<string, number>();
  let samples = 0;
  const look = async (): Promise<void> => {
    const { rows } = await observer.query<{ doing: string }>(
      `select coalesce(substring(query from 'pawl"?\\.(\\w+)\\('), left(query, 40)) || ': ' ||
         coalesce(wait_event_type || ' ' || wait_event, 'on CPU') as doing
       from pg_stat_activity
       where application_name = 'pawl' and state = 'active' and datname = current_database()`,
    );
    samples++;
    for (const { doing } of rows) seen.set(doing, (seen.get(doing) ?? 0) + 1);
  };
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, sampleMs));
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await loop;
      const top = [...seen].toSorted(([, one], [, other]) => other - one).slice(0, 12);
      return [
        `what the engine's sessions did, sessions at a time on average over ${samples} samples:`,
        ...top.map(([doing, times]) => `${(times / samples).toFixed(2).padStart(8)}  ${doing}`),
      ];
    },
  };
}
