/**
 * `list`: how long queries take beside many runs: the first page of `runs.list` with each of its
 * filters, a page from the middle, the queries of the metrics, and a count. Medians of warm calls.
 */

import { connect, type ListOptions } from "pawl";
import { PostgresStore } from "../../packages/pawl/dist/store/postgres/postgres-store.js";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { median } from "./statistics.js";

const rounds = 21;
const names = 20;

export const list: Bench = {
  defaults: { count: 1_000_000, quickCount: 20_000, concurrency: 1 },
  async measure({ database, count }: BenchRequest): Promise<Figure[]> {
    const { observer, url } = database;
    await observer.query("set search_path = pawl, public");
    // Twenty definitions; most runs are done, one of a hundred has failed, with one of ten codes,
    // as many were cancelled, and wait.
    await observer.query(
      `insert into runs (id, status, priority, eligible_at, inserted_at, completed_at, expires_at, retention, queue, kind, name, version,
         input, result, error, parent_id, child_of, position)
       select nextval('run_ids') << 6,
         (case when n % 100 = 7 then 'failed' when n % 100 = 11 then 'cancelled' when n % 100 = 13 then 'runnable'
           when n % 100 = 17 then 'awaiting_signal' else 'done' end)::run_status,
         0, t.at, t.at, t.at, t.at + interval '30 days', '30 days', 'queue-' || n % 5,
         case when n % ${names} = 3 then 'machine' when n % ${names} = 5 then 'workflow' else 'job' end, 'name-' || n % ${names}, 1,
         jsonb_build_object('n', n), '1',
         case when n % 100 = 7 then jsonb_build_object('name', 'Error', 'code', 'E_' || n % 1000 / 100, 'message', 'no') end,
         case when n % 50 = 0 then 64 end, case when n % 50 = 0 then n / 5000 end, case when n % 50 = 0 then n % 5000 end
       from generate_series(1, $1::int) n, lateral (select clock_timestamp() - ($1 - n) * interval '100 milliseconds' as at) t
       where n % 50 <> 0 or n < 5000`,
      [count],
    );
    await observer.query("vacuum analyze runs");
    const pawl = connect(url);
    const store = new PostgresStore({ url, schema: "pawl" }, { connections: 1 });
    const figures: Figure[] = [];
    const time = async (key: string, label: string, call: () => Promise<unknown>): Promise<void> => {
      const times: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const begunMs = performance.now();
        await call();
        times.push(performance.now() - begunMs);
      }
      figures.push({ key, label, value: median(times), unit: "ms" });
    };
    const page = async (label: string, options: ListOptions): Promise<void> => {
      const key = `list_${label.replaceAll(/\W+/g, "_")}_ms`;
      await time(key, `first page: ${label}`, () => pawl.runs.list(options));
    };
    try {
      await page("all", {});
      await page("name", { name: "name-3" });
      await page("name and status", { name: "name-7", status: "failed" });
      await page("status", { status: "failed" });
      await page("status running", { status: "running" });
      await page("phase", { phase: "awaiting_signal" });
      await page("kind", { kind: "workflow" });
      await page("error code", { error: "E_4" });
      await page("parent", { parentId: "64" });
      await page("since", { since: new Date(Date.now() - 60_000) });
      await page("until", { until: new Date(Date.now() - (count / 2) * 100) });
      await page("queue", { queue: "queue-2" });
      await page("input", { name: "name-3", input: { n: count - names + 3 } });
      await observer.query("create index runs_input on runs using gin (input jsonb_path_ops)");
      await page("input, with an index", { name: "name-3", input: { n: count - names + 3 } });
      const { cursor } = await pawl.runs.list({ status: "completed", limit: 100 });
      await time("list_next_page_ms", "next page: status", () =>
        pawl.runs.list({ status: "completed", limit: 100, cursor: cursor ?? undefined }),
      );
      await time("count_ms", "count: name and status", () =>
        pawl.runs.count({ name: "name-7", status: "failed" }),
      );
      await time("gauges_ms", "what /metrics asks", () => store.gauges(10_000));
    } finally {
      await pawl.close();
      await store.close();
    }
    return figures;
  },
};
