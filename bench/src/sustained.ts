/**
 * `sustained`: whether everything stays stable for minutes. First measures the capacity of one
 * client and one worker process together. Then runs for minutes at 70 % of that, with a short
 * retention, so that the table stops growing. Every few seconds it samples throughput, time from
 * start to completion on the database's clock, dead rows, sizes of the table and its indexes, and
 * the backlog. The last third of the samples is compared with the first, not counting the time
 * until the first runs were deleted.
 */

import { performance } from "node:perf_hooks";
import { connect, type Pawl } from "pawl";
import type pg from "pg";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import type { Panel } from "./plot.js";
import { keepResults } from "./results.js";
import { median, percentile } from "./statistics.js";
import { startWorker } from "./worker-process.js";

const load = 0.7;
const tickMs = 50;
const mostBatch = 1_000;
/** Batches in flight: more would only queue for connections. */
const mostInFlight = 4;
/** While the maximum is measured: more than the worker has slots. */
const maximumBacklog = 4_000;

interface Plan {
  readonly maximumSeconds: number;
  readonly seconds: number;
  readonly sampleSeconds: number;
  readonly retentionSeconds: number;
}

interface Sample {
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly backlog: number;
  readonly rows: number;
  readonly deadRows: number;
  readonly tableMb: number;
  readonly indexMb: Readonly<Record<string, number>>;
}

export const sustained: Bench = {
  defaults: { count: 1, quickCount: 1, concurrency: 500 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { quick, minutes } = request;
    const plan: Plan = {
      maximumSeconds: quick ? 5 : 15,
      seconds: minutes === undefined ? (quick ? 30 : 600) : minutes * 60,
      sampleSeconds: quick ? 2 : 10,
      retentionSeconds: quick ? 4 : 20,
    };
    const { maximum, samples } = await work(request, plan);
    keep(maximum, samples);
    return figuresOf(maximum, samples, plan);
  },
};

async function work({ database, concurrency, profiling, signal }: BenchRequest, plan: Plan) {
  const { observer } = database;
  let ended = 0;
  const worker = await startWorker({
    database,
    definition: "job",
    concurrency,
    expected: Number.MAX_SAFE_INTEGER,
    profilePath: undefined,
    options: { sweepInterval: 1_000 },
    longestMs: (plan.seconds + plan.maximumSeconds + 120) * 1_000,
    onProgress: (progress) => void (ended = progress.ended),
    signal,
  });
  const pawl = connect(database.url);
  try {
    const starter = new Starter(pawl, plan.retentionSeconds);
    const maximum = await maximumRate(starter, plan.maximumSeconds, () => ended);
    await drained(starter, () => ended, worker.deadline);
    const samples = await profiling.server("sustained", database, () =>
      steadyLoad(starter, observer, plan, load * maximum, () => ended, worker.deadline),
    );
    return { maximum, samples };
  } finally {
    await pawl.close();
    await worker.stop();
  }
}

/** Starts runs, some calls at a time. */
class Starter {
  started = 0;
  #inFlight = 0;
  #failure: Error | undefined;
  readonly #pawl: Pawl;
  readonly #item: { readonly input: typeof input; readonly retention: number };

  constructor(pawl: Pawl, retentionSeconds: number) {
    this.#pawl = pawl;
    this.#item = { input, retention: retentionSeconds * 1_000 };
  }

  /** Begins to start up to so many, unless too many calls are in flight already. */
  start(count: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    for (let left = count; left > 0 && this.#inFlight < mostInFlight; left -= mostBatch) {
      const size = Math.min(left, mostBatch);
      this.started += size;
      this.#inFlight++;
      this.#pawl
        .startMany(
          noOpJob(),
          Array.from({ length: size }, () => this.#item),
        )
        .catch((error: unknown) => (this.#failure = new Error("starts failed", { cause: error })))
        .finally(() => this.#inFlight--);
    }
  }
}

/** Runs per second with a backlog that never runs dry; the first third is for warming up. */
async function maximumRate(starter: Starter, seconds: number, ended: () => number): Promise<number> {
  const beginMs = performance.now();
  const passed = (): number => (performance.now() - beginMs) / 1_000;
  let since = { at: 0, ended: 0 };
  while (passed() < seconds) {
    starter.start(Math.min(maximumBacklog - (starter.started - ended()), mostBatch));
    if (passed() < seconds / 3) since = { at: passed(), ended: ended() };
    await pause(5);
  }
  return (ended() - since.ended) / (passed() - since.at);
}

async function drained(starter: Starter, ended: () => number, deadline: AbortSignal): Promise<void> {
  while (ended() < starter.started) {
    deadline.throwIfAborted();
    await pause(tickMs);
  }
}

async function steadyLoad(
  starter: Starter,
  observer: pg.Client,
  plan: Plan,
  perSecond: number,
  ended: () => number,
  deadline: AbortSignal,
): Promise<Sample[]> {
  const beginMs = performance.now();
  const passed = (): number => (performance.now() - beginMs) / 1_000;
  const startedBefore = starter.started;
  const samples: Sample[] = [];
  let sampling = Promise.resolve();
  let last = { at: 0, ended: ended() };
  while (passed() < plan.seconds) {
    deadline.throwIfAborted();
    const missing = Math.floor(perSecond * passed()) - (starter.started - startedBefore);
    if (missing > 0) starter.start(missing);
    if (
      passed() >= (samples.length + 1) * plan.sampleSeconds &&
      last.at < passed() - plan.sampleSeconds / 2
    ) {
      const now = { at: passed(), ended: ended() };
      const rate = (now.ended - last.ended) / (now.at - last.at);
      const backlog = starter.started - now.ended;
      last = now;
      sampling = sampling.then(async () => {
        const looked = await look(observer, plan);
        samples.push({ seconds: now.at, perSecond: rate, backlog, ...looked });
      });
    }
    await pause(tickMs);
  }
  await sampling;
  return samples;
}

/** Of the runs that ended within the last second. Rides runs_expiry. */
async function look(observer: pg.Client, { retentionSeconds }: Plan) {
  const { rows: ended } = await observer.query<{ ms: number }>(
    `select (extract(epoch from r.completed_at - r.inserted_at) * 1000)::float8 as ms
     from pawl.runs r, (select clock_timestamp() + $1 * interval '1 second' as at) t
     where r.retention = $1 * interval '1 second' and r.expires_at > t.at - interval '1 second' and r.expires_at <= t.at`,
    [retentionSeconds],
  );
  const { rows: tables } = await observer.query<{ live: number; dead: number; mb: number }>(
    `select n_live_tup::float8 as live, n_dead_tup::float8 as dead, pg_table_size(relid) / 1048576.0::float8 as mb
     from pg_stat_user_tables where schemaname = 'pawl' and relname = 'runs'`,
  );
  const { rows: indexes } = await observer.query<{ name: string; mb: number }>(
    `select indexrelname as name, pg_relation_size(indexrelid) / 1048576.0::float8 as mb
     from pg_stat_user_indexes where schemaname = 'pawl' and relname = 'runs' order by 1`,
  );
  const times = ended.map(({ ms }) => ms);
  return {
    p50Ms: times.length === 0 ? 0 : percentile(times, 50),
    p99Ms: times.length === 0 ? 0 : percentile(times, 99),
    rows: tables[0]!.live,
    deadRows: tables[0]!.dead,
    tableMb: tables[0]!.mb,
    indexMb: Object.fromEntries(indexes.filter(({ mb }) => mb > 0.1).map(({ name, mb }) => [name, mb])),
  };
}

const indexTotal = ({ indexMb }: Sample): number => Object.values(indexMb).reduce((sum, mb) => sum + mb, 0);

/** Each as the median of the first and of the last third. */
const compared: readonly (readonly [
  key: string,
  label: string,
  unit: string,
  of: (one: Sample) => number,
])[] = [
  ["per_s", "runs completed", "/s", ({ perSecond }) => perSecond],
  ["p50_ms", "start to completed, p50", "ms", ({ p50Ms }) => p50Ms],
  ["p99_ms", "start to completed, p99", "ms", ({ p99Ms }) => p99Ms],
  ["backlog", "backlog", "runs", ({ backlog }) => backlog],
  ["dead_rows", "dead rows", "", ({ deadRows }) => deadRows],
  ["table_mb", "table", "MB", ({ tableMb }) => tableMb],
  ["index_mb", "indexes", "MB", indexTotal],
];

function figuresOf(maximum: number, samples: readonly Sample[], plan: Plan): Figure[] {
  const steady = samples.filter(({ seconds }) => seconds > 2 * plan.retentionSeconds);
  const third = Math.max(1, Math.floor(steady.length / 3));
  const first = steady.slice(0, third);
  const last = steady.slice(-third);
  if (first.length === 0) throw new Error("too short: no samples after the first runs were deleted");
  return [
    { key: "maximum_per_s", label: "maximum, briefly", value: maximum, unit: "/s" },
    ...compared.flatMap(([key, label, unit, of]): Figure[] => {
      const [before, after] = [median(first.map(of)), median(last.map(of))];
      return [
        { key: `first_${key}`, label: `${label}, first third`, value: before, unit },
        { key: `last_${key}`, label: "  last third", value: after, unit },
        { key: `${key}_ratio`, label: "  ratio", value: before === 0 ? null : after / before, unit: "×" },
      ];
    }),
  ];
}

function keep(maximum: number, samples: readonly Sample[]): void {
  const line = (name: string, of: (one: Sample) => number) => ({
    name,
    points: samples.map((one) => ({ x: one.seconds, y: of(one) })),
  });
  const panels: Panel[] = [
    { title: "Throughput", unit: "runs/s", series: [line("", ({ perSecond }) => perSecond)] },
    {
      title: "Start to completed",
      unit: "ms",
      series: [line("p50", ({ p50Ms }) => p50Ms), line("p99", ({ p99Ms }) => p99Ms)],
    },
    {
      title: "Rows of the table",
      unit: "rows",
      series: [line("live", ({ rows }) => rows), line("dead", ({ deadRows }) => deadRows)],
    },
    {
      title: "Size",
      unit: "MB",
      series: [line("table", ({ tableMb }) => tableMb), line("indexes", indexTotal)],
    },
  ];
  const title = `Sustained load, 70 % of ${Math.round(maximum).toLocaleString("en-US")} runs/s`;
  keepResults("sustained", { maximum, samples }, { title, xLabel: "seconds", xScale: "linear", panels });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
