/**
 * Compares the database's CPU time per operation between two checkouts, old and new. Both have a
 * database on the same throw-away server, and one connection each. They take turns, block by block
 * for many rounds, so that other load on the machine hits both alike. The CPU time of a connection's server process
 * comes from /proc/<pid>/schedstat (nanoseconds), so this works only on Linux with a local server.
 *
 *     npm run bench:pairs -- --old ../pawl-before [--new .] [--rounds 15] [--sql "drop index …"]
 *
 * Each checkout must be built (`npx tsc -b`). Every operation is a call of the checkout's own store.
 * `--sql` runs in the new database first, for example to see what an index costs.
 */

import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type BenchDatabase, type BenchServer, openServer } from "./server.js";
import { median, percentile } from "./statistics.js";

const batch = 500;
const batches = 4;
/** Operations of a block of lone ones. */
const singles = 50;
const workerId = "bench-pairs";
const queue = "default";

/** The calls that both checkouts have. */
interface Store {
  register(registration: object): Promise<void>;
  start(runs: readonly object[], options: object): Promise<readonly { readonly runId: string }[]>;
  claim(request: object): Promise<{ readonly runs: readonly { readonly runId: string }[] }>;
  commit(
    commits: readonly object[],
    options: object,
  ): Promise<{ readonly verdicts: readonly { kind: string }[] }>;
  signal(signals: readonly object[], options: object): Promise<{ readonly handed: object | null }>;
  close(): Promise<void>;
}

interface Checkout {
  readonly store: Store;
  readonly database: BenchDatabase;
  /** The server process of the store's one connection. */
  readonly pid: number;
  readonly claims: Claims[];
}

/** Milliseconds per operation in one block. */
interface Cost {
  readonly old: number;
  readonly new: number;
}

async function open(directory: string, server: BenchServer, sql: string | undefined): Promise<Checkout> {
  const load = (file: string): Promise<unknown> =>
    import(pathToFileURL(path.resolve(directory, "packages/pawl/dist", file)).href);
  const { migrate } = (await load("index.js")) as { migrate(options: { url: string }): Promise<unknown> };
  const { PostgresStore } = (await load("store/postgres/postgres-store.js")) as {
    PostgresStore: new (address: object, options: object) => Store;
  };
  const database = await server.createDatabase("empty");
  await migrate({ url: database.url });
  await database.observer.query("alter table pawl.runs set (autovacuum_enabled = false)");
  if (sql !== undefined) await database.observer.query(sql);
  const store = new PostgresStore({ url: database.url, schema: "pawl" }, { connections: 1 });
  const definition = { version: 1, queue, priority: 0, retentionMs: 86_400_000 };
  await store.register({
    workerId,
    leaseMs: 3_600_000,
    queues: [queue],
    info: "{}",
    definitions: [
      { ...definition, name: "bench-job", kind: "job" },
      { ...definition, name: "bench-machine", kind: "machine" },
    ],
  });
  const { rows } = await database.observer.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'",
  );
  if (rows.length !== 1) throw new Error(`the store has ${rows.length} connections, not one`);
  return { store, database, pid: rows[0]!.pid, claims: [] };
}

/** The CPU time of a process so far. */
function cpuMsOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

const unset = ["delayMs", "at", "idempotencyKey", "uniqueKey", "uniqueScope", "partitionKey", "rateLimit"];
const newRun = {
  ...Object.fromEntries([...unset, "weight", "trace", "options"].map((name) => [name, null])),
  version: 1,
  queue,
  priority: 0,
  retentionMs: 86_400_000,
  direct: false,
  input: '{"orderId": 42}',
};
const job = { ...newRun, name: "bench-job", kind: "job", step: null };
const machine = { ...newRun, name: "bench-machine", kind: "machine", step: "begin" };
const starts = { allOrNothing: false, claim: null };

let lastClaim = 1_000_000n;

/** Claims of one call. */
interface Claims {
  readonly claimId: string;
  readonly turn: number;
  readonly runIds: readonly string[];
}

/** Claims due runs of one definition. The newest claims come first. */
async function claim({ store, claims }: Checkout, name: string): Promise<void> {
  const claimId = String((lastClaim += 1n));
  const served = { names: [name], versions: [1], floor: null, bounded: false };
  const { runs } = await store.claim({ queue, workerId, claimId, limit: batch, ...served });
  if (runs.length !== batch) throw new Error(`claimed ${runs.length} runs, not ${batch}`);
  claims.unshift({ claimId, turn: 0, runIds: runs.map(({ runId }) => runId) });
}

async function commit(
  { store }: Checkout,
  { claimId, turn, runIds }: Claims,
  transition: object,
): Promise<void> {
  const guard = { queue, claimId, turn, inboxSeq: 0, parentId: null, partitionKey: null, next: null };
  const commits = runIds.map((runId) => ({ ...guard, runId, transition }));
  const { verdicts } = await store.commit(commits, { patient: true });
  const wrong = verdicts.find(({ kind }) => kind !== "committed");
  if (wrong !== undefined) throw new Error(`a transition was not committed: ${JSON.stringify(wrong)}`);
}

/** A step of a round, on each checkout block by block. Without a name it is not measured. */
interface Step {
  readonly name?: string;
  /** Operations per block. */
  readonly count: number;
  readonly blocks: number;
  work(checkout: Checkout, block: number): Promise<unknown>;
}

const many = (name: string, work: Step["work"]): Step => ({ name, count: batch, blocks: batches, work });
const aside = (work: Step["work"]): Step => ({ count: 1, blocks: 1, work });
/** Works on the runs of the newest claims, one call each. */
const lone = (name: string, call: (checkout: Checkout, claims: Claims) => Promise<unknown>): Step => ({
  name,
  count: singles,
  blocks: batch / singles,
  async work(checkout, block) {
    const { runIds, ...claims } = checkout.claims[0]!;
    for (const runId of runIds.slice(block * singles, (block + 1) * singles))
      await call(checkout, { ...claims, runIds: [runId] });
  },
});

const jobs = Array.from({ length: batch }, () => job);
const machines = Array.from({ length: batch }, () => machine);
const done = { kind: "done", step: null, result: '{"shipped": true}' };
const keep = { kind: "keep", step: "go", state: '{"n": 1}', consumed: [] };
const wait = {
  kind: "await",
  step: "go",
  state: null,
  names: ["paid"],
  match: null,
  delayMs: null,
  shown: [],
};

const steps: readonly Step[] = [
  many("enqueue", ({ store }) => store.start(jobs, starts)),
  many("claims", (checkout) => claim(checkout, "bench-job")),
  many("ends", (checkout, block) => commit(checkout, checkout.claims[block]!, done)),
  lone("lone start", ({ store }) => store.start([job], starts)),
  aside((checkout) => claim(checkout, "bench-job")),
  lone("lone end", (checkout, claims) => commit(checkout, claims, done)),
  aside(({ store }) => store.start(machines, starts)),
  aside((checkout) => claim(checkout, "bench-machine")),
  many("kept claims", (checkout, turn) => commit(checkout, { ...checkout.claims[0]!, turn }, keep)),
  lone("lone kept claim", (checkout, claims) => commit(checkout, { ...claims, turn: batches }, keep)),
  aside((checkout) => commit(checkout, { ...checkout.claims[0]!, turn: batches + 1 }, wait)),
  lone("lone signal", async ({ store }, { runIds }) => {
    const offer = { workerId, claimId: String((lastClaim += 1n)), queues: [queue] };
    const signal = { runId: runIds[0], name: "paid", payload: "{}", dedupKey: null };
    const { handed } = await store.signal([signal], { patient: true, offer });
    if (handed === null) throw new Error("the signal did not hand its run over");
  }),
  aside(async ({ database, claims }) => {
    claims.length = 0;
    await database.observer.query("delete from pawl.runs");
    await database.observer.query("delete from pawl.signals");
    await database.observer.query("vacuum analyze pawl.runs, pawl.signals");
  }),
];

/** Every step once, both checkouts block by block in turns. */
async function measureRound(before: Checkout, after: Checkout, costs: Map<string, Cost[]>): Promise<void> {
  for (const { name, count, blocks, work } of steps) {
    for (let block = 0; block < blocks; block++) {
      const took = new Map<Checkout, number>();
      for (const one of block % 2 === 0 ? [before, after] : [after, before]) {
        const begin = cpuMsOf(one.pid);
        await work(one, block);
        took.set(one, cpuMsOf(one.pid) - begin);
      }
      if (name === undefined) continue;
      const cost = { old: took.get(before)! / count, new: took.get(after)! / count };
      costs.set(name, [...(costs.get(name) ?? []), cost]);
    }
  }
}

const { values } = parseArgs({
  options: {
    old: { type: "string" },
    new: { type: "string", default: "." },
    rounds: { type: "string", default: "15" },
    sql: { type: "string" },
  },
});
if (values.old === undefined) throw new Error("give the directory of the old checkout: --old <dir>");
const server = await openServer(false);
const checkouts: Checkout[] = [];
try {
  const before = await open(values.old, server, undefined);
  checkouts.push(before);
  const after = await open(values.new, server, values.sql);
  checkouts.push(after);
  // the disk costs both the same: without it, a difference shows more clearly
  await before.database.observer.query("alter system set fsync = off");
  await before.database.observer.query("select pg_reload_conf()");
  const rounds = Number(values.rounds);
  const costs = new Map<string, Cost[]>();
  for (let round = 1; round <= rounds + 2; round++) {
    await measureRound(before, after, costs);
    if (round === 2) costs.clear(); // they only warmed up
  }
  console.log("operation         old µs   new µs   ratio: median of blocks, of the quicker quarter");
  for (const [name, pairs] of costs) {
    const ratio = median(pairs.map((cost) => cost.new / cost.old));
    const sides = [pairs.map((cost) => cost.old), pairs.map((cost) => cost.new)];
    const us = sides.map((one) => (median(one) * 1_000).toFixed(1).padStart(8));
    const [old, now] = sides.map((one) => percentile(one, 25));
    console.log(name.padEnd(15), ...us, ratio.toFixed(3).padStart(12), (now! / old!).toFixed(3).padStart(15));
  }
} finally {
  await Promise.all(checkouts.map(({ store }) => store.close()));
  await server.close();
}
