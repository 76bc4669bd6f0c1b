/**
 * The sequential model's claim: due runs of one queue, of the definitions that are served, in the order (priority, eligible_at,
 * id). Of the runs that share a partition key, in whatever queue, only the first due one, and none while one of them is held;
 * runs of definitions that nobody serves are not in line, if others are.
 */

import { awaitedBy } from "./match.js";
import { type Applied, type ClaimedRun, type Command, type Model, put, type Run } from "./model.js";

/** What all workers serve. */
export const served: readonly string[] = ["counter", "second"];

export const isServed = ({ name }: Run): boolean => served.includes(name);

export const claim = (model: Model, command: Command & { op: "claim" }): Applied => {
  if (model.workers.get(command.worker) !== "live") {
    return { model, answer: { op: "claim", runs: [], more: false, dueMs: null } };
  }
  const taken = [...model.runs.values()]
    .filter((run) => run.queue === command.queue && isServed(run))
    .filter((run) => isDue(model, run) && isFirstOfKey(model, run))
    .toSorted(byClaimOrder)
    .slice(0, command.limit)
    .map((run) => take(run, command));
  const after = put(model, ...taken);
  const more = taken.length >= command.limit;
  const runs = taken.map((run) => describe(after, run));
  return {
    model: after,
    answer: { op: "claim", runs, more, dueMs: more ? null : nextDueMs(model, command.queue) },
  };
};

/** The runs that wait for a key, due or not, in order; none while somebody holds it. */
const lineOf = (model: Model, key: string): Run[] => {
  const siblings = [...model.runs.values()].filter(({ partitionKey }) => partitionKey === key);
  return siblings.some(({ holder }) => holder !== null)
    ? []
    : siblings.filter(isWaiting).toSorted(byClaimOrder);
};

/** The first due run of a key, if nobody holds the key. */
export const firstOfKey = (model: Model, key: string): Run | undefined => {
  const due = lineOf(model, key).filter((run) => isDue(model, run));
  return due.find(isServed) ?? due[0];
};

export const isWaiting = ({ status }: Run): boolean => status === "runnable" || status === "awaiting_signal";

export const isDue = (model: Model, run: Run): boolean => isWaiting(run) && run.eligibleAt <= model.now;

const nextDueMs = (model: Model, queue: string): number | null => {
  const dueMs = [...model.runs.values()]
    .filter((run) => run.queue === queue && isServed(run) && isWaiting(run) && run.eligibleAt > model.now)
    .map((run) => run.eligibleAt - model.now)
    .filter((ms) => ms < Infinity);
  return dueMs.length === 0 ? null : Math.min(...dueMs);
};

const byClaimOrder = (a: Run, b: Run): number =>
  a.priority - b.priority || a.eligibleAt - b.eligibleAt || a.id - b.id;

const isFirstOfKey = (model: Model, run: Run): boolean =>
  run.partitionKey === null || firstOfKey(model, run.partitionKey) === run;

/** A wait that is claimed has not been woken: its deadline has passed. The first claim fixes what the wait is resolved with. */
export const take = (
  run: Run,
  { worker, claimId }: { readonly worker: string; readonly claimId: string },
): Run => ({
  ...run,
  status: "executing",
  holder: worker,
  claimId,
  turn: 0,
  timedOut: run.timedOut || run.status === "awaiting_signal",
  awaits:
    run.awaits?.kind === "signal" ? { ...run.awaits, upTo: run.awaits.upTo ?? run.inboxSeq } : run.awaits,
});

export const describe = (model: Model, run: Run): ClaimedRun => ({
  id: run.id,
  step: run.step,
  priority: run.priority,
  partitionKey: run.partitionKey,
  parentId: run.parentId,
  attempt: run.attempt,
  crashes: run.crashes,
  timedOut: run.timedOut,
  inboxSeq: run.inboxSeq,
  awaited: awaitedBy(run),
  inbox: run.inbox,
  children:
    run.awaits?.kind === "children"
      ? run.awaits.ids.map((id) => ({ id, status: model.runs.get(id)!.status }))
      : [],
});
