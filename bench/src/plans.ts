/**
 * `plans`: prints the plans inside the hot functions, as the server reports them (auto_explain,
 * nested statements): every statement that touches a table, beside many ended runs. Batches of 100,
 * planned and warm.
 */

import { randomInt } from "node:crypto";
import type pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";

const batch = 100;
const rounds = 7;
const worker = "bench-plans";
/** Of PostgreSQL's generic plans: they are used from the sixth call on, if not from the first. */
const shown = rounds - 1;

export const plans: Bench = {
  defaults: { count: 100_000, quickCount: 10_000, concurrency: 1 },
  async measure({ database, count }: BenchRequest): Promise<Figure[]> {
    const { observer } = database;
    await observer.query("set search_path = pawl, public");
    await fill(observer, count);
    const notices: string[] = [];
    const hear = ({ message }: { message?: string | undefined }): void => void notices.push(message ?? "");
    observer.on("notice", hear);
    for (let round = 0; round < rounds; round++) {
      if (round === shown) await listen(observer);
      await callAll(observer);
    }
    observer.off("notice", hear);
    for (const plan of notices.flatMap(toPlan)) console.log(`${plan}\n`);
    return [{ key: "plans", label: "statements shown", value: notices.flatMap(toPlan).length, unit: "" }];
  },
};

async function fill(observer: pg.Client, ended: number): Promise<void> {
  await observer.query(
    `insert into runs (id, status, priority, eligible_at, inserted_at, completed_at, expires_at, retention, queue, kind, name, input, result)
     select nextval('run_ids') << 6, 'done', 0, clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '1 day',
       '1 day', 'default', 'job', 'bench', '{}', '1' from generate_series(1, $1::int)`,
    [ended],
  );
  await observer.query("vacuum analyze runs");
  await observer.query(
    `insert into workers (id, lease, serves, queues, registered_at, seen_at)
     values ($1, '1 hour', '{bench@1}', '{default}', clock_timestamp(), clock_timestamp())`,
    [worker],
  );
}

async function listen(observer: pg.Client): Promise<void> {
  await observer.query("load 'auto_explain'");
  for (const setting of [
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "auto_explain.log_analyze = on",
    "auto_explain.log_buffers = on",
    "auto_explain.log_timing = off",
    "client_min_messages = log",
  ]) {
    await observer.query(`set ${setting}`);
  }
}

/** Starts, claims, records a step of and ends a batch of workflows. */
async function callAll(observer: pg.Client): Promise<void> {
  const all = (value: string): string => `array_fill(${value}, array[${batch}])`;
  const claimId = randomInt(1, 2 ** 31);
  await observer.query(
    `select count(*) from start(${all("'bench'::text")}, ${all("1")}, ${all("'workflow'::text")}, ${all("'default'::text")}, null,
       ${all("'{}'::text")}, null, null, null, null, null, null, null, null, null, null, null, null, null, null, true, null, null, null)`,
  );
  const { rows } = await observer.query<{ id: string | null }>(
    `select id from claim('default', $1, $2, ${batch}, '{bench}', '{1}', null, null)`,
    [worker, claimId],
  );
  const ids = rows.map(({ id }) => id).filter((id) => id !== null);
  await observer.query(
    `select record($1::bigint[], ${all("$2::bigint")}, ${all("'step'::text")}, ${all("'run'::text")}, ${all("1")}, ${all("0")},
       ${all("'1'::text")}, null, ${all("0::bigint")}, null, null, true)`,
    [ids, claimId],
  );
  await observer.query(
    `select * from commit($1::bigint[], ${all("$2::bigint")}, ${all("0")}, ${all("'done'::text")}, null, null, ${all("'1'::text")}, null,
       null, null, null, null, null, null, $3, null, true)`,
    [ids, claimId, worker],
  );
}

/** The plan of a statement on a table: its first words, then its nodes. */
function toPlan(message: string): string[] {
  const [, text, plan] =
    /Query Text: ([\s\S]*?)\n((?:\S[^\n]*\(cost|Aggregate|Insert|Update|Limit|Function)[\s\S]*)$/.exec(
      message,
    ) ?? [];
  if (text === undefined || plan === undefined || !/ on (runs|steps|workers|signals)\b/.test(plan)) return [];
  const what = text.replaceAll(/\s+/g, " ").slice(0, 110);
  const nodes = plan
    .split("\n")
    .filter(
      (line) =>
        !/^\s*(Output|Planning|Execution|JIT|Conflict|Heap Fetches|Storage|Sort (Key|Method)|CTE)\b/.test(
          line,
        ),
    )
    .map((line) =>
      line.replace(/ \(cost=[^)]*\)/, "").replace(/\(actual rows=(\S+) loops=(\d+)\)/, "$1 × $2"),
    );
  return [`-- ${what}\n${nodes.join("\n")}`];
}
