/**
 * Whether the database holds what the model says: every run in all that the model knows of it, its inbox and the dedup keys
 * it remembers, the workers and their leases. Which runs their key has blocked the model does not say, but whom it may block:
 * a due one, and never the one that could be claimed.
 */

import { isDeepStrictEqual } from "node:util";
import type { Model } from "../run-model.js";
import { firstOfKey, isDue } from "../runs/claim.js";
import type { Run } from "../runs/model.js";
import type { Stored, StoredRow } from "./database.js";

/** What differs, for people to read; null: nothing. */
export const differenceOf = (model: Model, stored: Stored): string | null => {
  const expected = [...model.runs.values()].toSorted((a, b) => a.id - b.id).map(rowOf);
  const actual = stored.runs.map(({ hold: _hold, ...row }) => row);
  if (!isDeepStrictEqual(actual, expected)) {
    return rowsDiffer(expected, actual);
  }
  const workers = [...model.workers].toSorted().map(([id, lease]) => [id, lease === "live"]);
  if (!isDeepStrictEqual(stored.workers, workers)) {
    return `workers: ${JSON.stringify(stored.workers)} instead of ${JSON.stringify(workers)}`;
  }
  const wrong = stored.runs.find((row) => !mayHold(model, row));
  if (wrong !== undefined) {
    return `run ${wrong.id} has hold ${wrong.hold}`;
  }
  return stored.leftovers === 0 ? null : `${stored.leftovers} consumed signals are left over`;
};

const mayHold = (model: Model, { id, hold }: StoredRow): boolean => {
  const run = model.runs.get(id)!;
  return (
    hold === 0 ||
    (hold === 1 &&
      run.partitionKey !== null &&
      isDue(model, run) &&
      firstOfKey(model, run.partitionKey) !== run)
  );
};

const timeOf = (at: number | null): number | null => (at === Infinity ? null : at);

const rowOf = ({ awaits, dedupKeys, inbox, retentionMs: _retention, ...run }: Run): object => ({
  ...run,
  eligibleAt: timeOf(run.eligibleAt),
  names: awaits?.kind === "signal" ? awaits.names : null,
  match: awaits?.kind === "signal" ? awaits.match : null,
  upTo: awaits?.kind === "signal" ? awaits.upTo : null,
  // The children of a cancelled run may be swept before it.
  children:
    run.status !== "cancelled" && awaits?.kind === "children" && awaits.ids.length > 0 ? awaits.ids : null,
  inbox: inbox.length === 0 ? null : inbox,
  dedupKeys: dedupKeys.toSorted(),
});

const rowsDiffer = (expected: readonly object[], actual: readonly object[]): string => {
  const index = expected.findIndex((row, at) => !isDeepStrictEqual(row, actual[at]));
  const [row, stored] = [expected[index] ?? {}, actual[index] ?? {}] as Record<string, unknown>[];
  const columns = Object.keys({ ...row, ...stored! }).filter(
    (key) => !isDeepStrictEqual(row![key], stored![key]),
  );
  const show = (of: Record<string, unknown>): string =>
    JSON.stringify(Object.fromEntries(columns.map((column) => [column, of[column]])));
  return index < 0
    ? `${actual.length} runs instead of ${expected.length}`
    : `run ${index + 1}: ${show(stored!)} instead of ${show(row!)}`;
};
