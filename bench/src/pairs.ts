/**
 * Compares the database's CPU time per operation between two checkouts, old and new. Both have a
 * database on the same throw-away server, and one connection each. They take turns, many rounds, so
 * that other load on the machine hits both alike. The CPU time of a connection's server process
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
import { median } from "./statistics.js";

const batch = 500;
const batches = 4;
const singles = 500;
const workerId = "bench-pairs";
const queue = "default";

/** The calls that both checkouts have. */
interface Store {
  register(registration: object): Promise<void>;
  start(runs: readonly object[], options: object): Promise<readonly { readonly runId: string }[]>;
  claim(request: object): Promise<{ readonly runs: readonly { readonly runId: string }[] }>;
  commit(commits: readonly object[], options: object): Promise<{ readonly verdicts: readonly Verdict[] }>;
  signal(signals: readonly object[], options: object): Promise<{ readonly handed: object | null }>;
  close(): Promise<void>;
}

interface Verdict {
  readonly kind: string;
}

interface Checkout {
  readonly store: Store;
  readonly database: BenchDatabase;
  /** The server process of the store's one connection. */
  readonly pid: number;
  /** Milliseconds per operation, one value a round. */
  readonly costs: Map<string, number[]>;
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
  return { store, database, pid: rows[0]!.pid, costs: new Map() };
}

/** The CPU time of a process so far. */
function cpuMsOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

async function measure(
  { pid, costs }: Checkout,
  name: string,
  count: number,
  work: () => Promise<void>,
): Promise<void> {
  const before = cpuMsOf(pid);
  await work();
  const cost = (cpuMsOf(pid) - before) / count;
  costs.set(name, [...(costs.get(name) ?? []), cost]);
}

const newRun = {
  version: 1,
  queue,
  priority: 0,
  input: '{"orderId": 42}',
  delayMs: null,
  at: null,
  retentionMs: 86_400_000,
  idempotencyKey: null,
  uniqueKey: null,
  uniqueScope: null,
  partitionKey: null,
  rateLimit: null,
  weight: null,
  trace: null,
  direct: false,
  options: null,
};
const job = { ...newRun, name: "bench-job", kind: "job", step: null };
const machine = { ...newRun, name: "bench-machine", kind: "machine", step: "begin" };
const starts = { allOrNothing: false, claim: null };
const done = { kind: "done", step: null, result: '{"shipped": true}' };

let lastClaim = 1_000_000n;

/** Claims due runs of one definition, and says under which claim id. */
async function claim(
  { store }: Checkout,
  name: string,
): Promise<{ claimId: string; turn: number; runIds: string[] }> {
  const claimId = String((lastClaim += 1n));
  const request = {
    queue,
    workerId,
    claimId,
    limit: batch,
    names: [name],
    versions: [1],
    floor: null,
    bounded: false,
  };
  const { runs } = await store.claim(request);
  if (runs.length !== batch) throw new Error(`claimed ${runs.length} runs, not ${batch}`);
  return { claimId, turn: 0, runIds: runs.map(({ runId }) => runId) };
}

type Claims = Awaited<ReturnType<typeof claim>>;

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

/** One turn of one checkout: every operation, and the table as empty as before. */
async function takeTurn(checkout: Checkout): Promise<void> {
  const { store, database } = checkout;
  const some = batch * batches;
  const jobs = Array.from({ length: batch }, () => job);
  const machines = Array.from({ length: batch }, () => machine);
  const claims: Claims[] = [];
  await measure(checkout, "enqueue", some, async () => {
    for (let n = 0; n < batches; n++) await store.start(jobs, starts);
  });
  await measure(checkout, "claims", some, async () => {
    for (let n = 0; n < batches; n++) claims.push(await claim(checkout, "bench-job"));
  });
  await measure(checkout, "ends", some, async () => {
    for (const one of claims) await commit(checkout, one, done);
  });

  await measure(checkout, "lone start", singles, async () => {
    for (let n = 0; n < singles; n++) await store.start([job], starts);
  });
  const lone = await claim(checkout, "bench-job");
  await measure(checkout, "lone end", singles, async () => {
    for (const runId of lone.runIds) await commit(checkout, { ...lone, runIds: [runId] }, done);
  });

  await store.start(machines, starts);
  let kept = await claim(checkout, "bench-machine");
  await measure(checkout, "kept claims", some, async () => {
    for (let n = 0; n < batches; n++) {
      await commit(checkout, kept, { kind: "keep", step: "go", state: `{"n": ${n}}`, consumed: [] });
      kept = { ...kept, turn: kept.turn + 1 };
    }
  });
  await measure(checkout, "lone kept claim", singles, async () => {
    for (const runId of kept.runIds)
      await commit(
        checkout,
        { ...kept, runIds: [runId] },
        { kind: "keep", step: "go", state: "{}", consumed: [] },
      );
  });
  kept = { ...kept, turn: kept.turn + 1 };
  const wait = { step: "go", state: null, names: ["paid"], match: null, delayMs: null, shown: [] };
  await commit(checkout, kept, { kind: "await", ...wait });
  const claimId = String((lastClaim += 1n));
  await measure(checkout, "lone signal", singles, async () => {
    for (const runId of kept.runIds) {
      const { handed } = await store.signal([{ runId, name: "paid", payload: "{}", dedupKey: null }], {
        patient: true,
        offer: { workerId, claimId, queues: [queue] },
      });
      if (handed === null) throw new Error("the signal did not hand its run over");
    }
  });
  await database.observer.query("delete from pawl.runs");
  await database.observer.query("delete from pawl.signals");
  await database.observer.query("vacuum analyze pawl.runs, pawl.signals");
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
  // the first two rounds only warm up
  for (let round = -2; round < rounds; round++) {
    for (const one of round % 2 === 0 ? [before, after] : [after, before]) await takeTurn(one);
    if (round === -1) for (const { costs } of checkouts) costs.clear();
  }
  console.log("operation         old µs   new µs   ratio (median of rounds)   ratio of the least");
  for (const [name, old] of before.costs) {
    const now = after.costs.get(name)!;
    const ratio = median(now.map((cost, round) => cost / old[round]!));
    const least = Math.min(...now) / Math.min(...old);
    const us = [median(old), median(now)].map((ms) => (ms * 1_000).toFixed(1).padStart(8));
    console.log(
      `${name.padEnd(15)} ${us.join(" ")}   ${ratio.toFixed(3).padStart(6)} ${least.toFixed(3).padStart(25)}`,
    );
  }
} finally {
  await Promise.all(checkouts.map(({ store }) => store.close()));
  await server.close();
}
