/** Short ways to write into the journals of workflow runs in tests of the store. */

import type { JournalChange, JournalEntry, RecordVerdict } from "../../packages/pawl/dist/store/journal.js";
import type { ClaimedRun, NewRun, Transition } from "../../packages/pawl/dist/store/store.js";
import type { TestDatabase } from "./database.js";
import { aRun, claimOne, start } from "./store.js";

export type Held = ClaimedRun & { readonly claimId: string };

/** What a workflow run is started with. */
const aFlow = (given: Partial<NewRun> = {}): Partial<NewRun> => ({
  name: "flow",
  kind: "workflow",
  ...given,
});

/** A workflow run that "worker" executes. */
export async function executed(database: TestDatabase, given: Partial<NewRun> = {}): Promise<Held> {
  const [runId] = await start(database, aFlow(given));
  const run = await claimFlow(database);
  if (run.runId !== runId) throw new Error(`claimed run ${run.runId} instead of ${runId}`);
  return run;
}

export const claimFlow = (database: TestDatabase, workerId = "worker"): Promise<Held> =>
  claimOne(database, { workerId, names: ["flow"] });

export const ran = (output: unknown, attempt = 0): JournalChange => ({
  op: "run",
  attempt,
  output: JSON.stringify(output),
  error: null,
  tookMs: 5,
});
export const failedFor = (message: string, delayMs: number, attempt = 1): JournalChange => ({
  op: "retry",
  kind: "run",
  attempt,
  error: JSON.stringify({ name: "Error", message }),
  delayMs,
});
export const sleepFor = (delayMs: number): JournalChange => ({ op: "sleep", delayMs, at: null });
export const waitFor = (
  event: string,
  { match = null as string | null, timeoutMs = null as number | null } = {},
): JournalChange => ({ op: "wait", event, match, delayMs: timeoutMs });
export const invoke = (given: Partial<NewRun> = {}): JournalChange => ({ op: "invoke", child: aRun(given) });

export function anEntry(
  { runId, claimId }: Pick<Held, "runId" | "claimId">,
  name: string,
  seq: number,
  change: JournalChange,
  inboxSeq = 0,
): JournalEntry {
  return { runId, claimId, name, seq, inboxSeq, change };
}

/** Records one entry. */
export async function record(
  { store }: TestDatabase,
  run: Pick<Held, "runId" | "claimId">,
  name: string,
  seq: number,
  change: JournalChange,
  { inboxSeq = 0, patient = true } = {},
): Promise<RecordVerdict> {
  const [verdict] = await store.record([anEntry(run, name, seq, change, inboxSeq)], { patient });
  return verdict!;
}

/** Leaves the worker, waiting for these names. */
export const suspend = (
  names: readonly string[],
  { after = 0, dueAt = null as string | null, matches = {} } = {},
): Transition => ({ kind: "suspend", names, matches, after, dueAt, steps: ["x"] });
