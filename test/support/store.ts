/** Short ways to use the store in tests of its laws: start, claim and commit with what does not matter filled in. */

import type {
  Claimed,
  ClaimedRun,
  Commit,
  NewRun,
  SignalVerdict,
  Transition,
  Verdict,
} from "../../packages/pawl/dist/store/store.js";
import { afterEach } from "vitest";
import type { TestDatabase } from "./database.js";

let lastClaim = 0;

const newClaim = (): string => String(++lastClaim + Date.now() * 1000);

export function aRun(given: Partial<NewRun> = {}): NewRun {
  return {
    name: "counter",
    version: 1,
    kind: "machine",
    queue: "default",
    priority: 0,
    input: "{}",
    step: null,
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
    ...given,
  };
}

export const key = (text: string): Uint8Array => Buffer.from(text);

export async function start(database: TestDatabase, ...runs: Partial<NewRun>[]): Promise<string[]> {
  const started = await database.store.start(runs.map(aRun), { allOrNothing: false, claim: null });
  return started.map((run) => run.runId);
}

export async function register(database: TestDatabase, workerId: string, leaseMs = 600_000): Promise<void> {
  const definition = {
    name: "counter",
    version: 1,
    kind: "machine",
    queue: "default",
    priority: 0,
    retentionMs: 1,
  };
  await database.store.register({
    workerId,
    leaseMs,
    queues: ["default"],
    info: "{}",
    definitions: [definition],
  });
}

interface ClaimOptions {
  workerId?: string;
  claimId?: string;
  limit?: number;
  queue?: string;
  names?: string[];
  versions?: number[];
  floor?: Claimed["floor"];
}

export async function claim(
  database: TestDatabase,
  options: ClaimOptions = {},
): Promise<Claimed & { claimId: string; workerId: string }> {
  const claimId = options.claimId ?? newClaim();
  const workerId = options.workerId ?? "worker";
  const claimed = await database.store.claim({
    queue: "default",
    limit: 100,
    names: ["counter"],
    versions: [1],
    floor: null,
    ...options,
    workerId,
    claimId,
  });
  return { ...claimed, claimId, workerId };
}

export async function claimOne(
  database: TestDatabase,
  options: ClaimOptions = {},
): Promise<ClaimedRun & { claimId: string }> {
  const { runs, claimId } = await claim(database, { ...options, limit: 1 });
  if (runs[0] === undefined) throw new Error("there was nothing to claim");
  return { ...runs[0], claimId };
}

export const keep = (step: string, state: string | null = null): Transition => ({
  kind: "keep",
  step,
  state,
  consumed: [],
});
export const done = (result = "null"): Transition => ({ kind: "done", step: null, result });
export const retry = (delayMs = 0): Transition => ({
  kind: "retry",
  step: null,
  state: null,
  delayMs,
  error: null,
});
export const next = (
  step: string,
  state: string | null = null,
  given: Partial<Extract<Transition, { kind: "next" }>> = {},
): Transition => ({
  kind: "next",
  step,
  state,
  priority: null,
  partitionKey: undefined,
  rateLimit: null,
  weight: null,
  consumed: [],
  ...given,
});
/** Waits for these signals. `timeoutMs`: null for ever. */
export const park = (
  names: string | string[],
  { timeoutMs = null as number | null, match = null as string | null, shown = [] as number[] } = {},
): Transition => ({
  kind: "await",
  step: "woken",
  state: null,
  names: typeof names === "string" ? [names] : names,
  match,
  delayMs: timeoutMs,
  shown,
});
export const spawn = (...children: Partial<NewRun>[]): Transition => ({
  kind: "spawn",
  step: "gathered",
  state: null,
  children: children.map(aRun),
  consumed: [],
});
export const stop = (message: string): Transition => ({
  kind: "stop",
  step: null,
  error: JSON.stringify({ name: "Error", message }),
});

/** The commit of a transition, with what the claim of the run brought along. */
export function aCommit(
  run: Pick<ClaimedRun, "runId"> & Partial<ClaimedRun> & { claimId: string },
  transition: Transition,
  turn = 0,
): Commit {
  const { runId, claimId, inboxSeq = 0, parentId = null, partitionKey = null } = run;
  return { runId, claimId, turn, inboxSeq, parentId, partitionKey, next: null, transition };
}

export async function commit(
  database: TestDatabase,
  run: Pick<ClaimedRun, "runId"> & Partial<ClaimedRun> & { claimId: string },
  transition: Transition,
  { turn = 0, patient = true } = {},
): Promise<Verdict> {
  const { verdicts } = await database.store.commit([aCommit(run, transition, turn)], { patient });
  return verdicts[0]!;
}

/** The same against others that lock the run: sent again while it is busy, as the engine does. */
export async function commitUntilKnown(...given: Parameters<typeof commit>): Promise<Verdict> {
  for (;;) {
    const verdict = await commit(...given);
    if (verdict.kind !== "busy") return verdict;
  }
}

/** Makes a call again while a row that it needs is locked, as the slow lanes of a client do. */
export async function untilFree<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
    }
  }
}

/** Whether a call found a row locked for longer than it waits. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { cause?: { code?: string } }).cause?.code === "55P03";
}

/** Commits a transition for each of these runs in one call. */
export async function commitAll(
  database: TestDatabase,
  runs: readonly (Pick<ClaimedRun, "runId"> & Partial<ClaimedRun>)[],
  claimId: string,
  transitionOf: (index: number) => Transition,
  turn = 0,
): Promise<Verdict[]> {
  const commits = runs.map((run, index) => aCommit({ ...run, claimId }, transitionOf(index), turn));
  return (await database.store.commit(commits, { patient: true })).verdicts;
}

/** Sends one signal and answers its verdict. */
export async function signal(
  database: TestDatabase,
  runId: string,
  name: string,
  { payload = "{}", dedupKey = null as string | null } = {},
): Promise<SignalVerdict> {
  const { verdicts } = await database.store.signal([{ runId, name, payload, dedupKey }], { patient: true });
  return verdicts[0]!;
}

/** After each test nothing is left that another could claim. */
export function endRunsAfterEach({ sql }: Pick<TestDatabase, "sql">): void {
  afterEach(async () => {
    await sql(
      "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where completed_at is null",
    );
  });
}
