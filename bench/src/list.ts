/**
 * `list`: how long queries take beside many runs: the first page of `runs.list` with each of its
 * filters, a page from the middle, the queries of the metrics, and a count. Medians of warm calls.
 */

import { connect, type ListOptions } from "pawl";
import { PostgresStore } from "../../packages/pawl/dist/store/postgres/postgres-store.js";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { fillMixed, mixedNames } from "./fill.js";
import { median } from "./statistics.js";

const rounds = 21;

export const list: Bench = {
  defaults: { count: 1_000_000, quickCount: 20_000, concurrency: 1 },
  async measure({ database, count }: BenchRequest): Promise<Figure[]> {
    const { observer, url } = database;
    await fillMixed(observer, count);
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
      await page("input", { name: "name-3", input: { n: count - mixedNames + 3 } });
      await observer.query("create index runs_input on runs using gin (input jsonb_path_ops)");
      await page("input, with an index", { name: "name-3", input: { n: count - mixedNames + 3 } });
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
