/** Short ways to use the store in tests of its laws: start, claim and commit with what does not matter filled in. */

import type {
  Claimed,
  ClaimedRun,
  Commit,
  NewRun,
  Transition,
  Verdict,
} from "../../packages/pawl/dist/store/store.js";
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
    direct: false,
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
  await database.store.register({ workerId, leaseMs, info: "{}", definitions: [definition] });
}

interface ClaimOptions {
  workerId?: string;
  claimId?: string;
  limit?: number;
  queue?: string;
  names?: string[];
  versions?: number[];
  floor?: Claimed["floor"];
  after?: Claimed["after"];
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
    after: null,
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
});
export const done = (result = "null"): Transition => ({ kind: "done", step: null, result });
export const retry = (delayMs = 0): Transition => ({
  kind: "retry",
  step: null,
  state: null,
  delayMs,
  error: null,
});
export const next = (step: string, state: string | null = null): Transition => ({
  kind: "next",
  step,
  state,
  priority: null,
});
export const stop = (message: string): Transition => ({
  kind: "stop",
  step: null,
  error: JSON.stringify({ name: "Error", message }),
});

export async function commit(
  database: TestDatabase,
  run: { runId: string; claimId: string },
  transition: Transition,
  { turn = 0, patient = true } = {},
): Promise<Verdict> {
  const item: Commit = { runId: run.runId, claimId: run.claimId, turn, transition };
  const [verdict] = await database.store.commit([item], { patient });
  return verdict!;
}
