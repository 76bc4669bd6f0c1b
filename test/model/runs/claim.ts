/**
 * The sequential model's claim: due runs of one queue in the order (priority, eligible_at, id). Of the runs that share a
 * partition key, in whatever queue, only the first due one, and none while one of them is held.
 */

import { awaitedBy } from "./match.js";
import { type Applied, type ClaimedRun, type Command, type Model, put, type Run } from "./model.js";

export const claim = (model: Model, command: Command & { op: "claim" }): Applied => {
  if (model.workers.get(command.worker) !== "live") {
    return { model, answer: { op: "claim", runs: [] } };
  }
  const due = [...model.runs.values()].filter((run) => isDue(model, run)).toSorted(byClaimOrder);
  const taken = due
    .filter((run) => run.queue === command.queue && isFirstOfKey(model, due, run))
    .slice(0, command.limit)
    .map((run) => take(run, command));
  const after = put(model, ...taken);
  return { model: after, answer: { op: "claim", runs: taken.map((run) => describe(after, run)) } };
};

const isDue = (model: Model, { status, eligibleAt }: Run): boolean =>
  (status === "runnable" || status === "awaiting_signal") && eligibleAt <= model.now;

const byClaimOrder = (a: Run, b: Run): number =>
  a.priority - b.priority || a.eligibleAt - b.eligibleAt || a.id - b.id;

const isFirstOfKey = (model: Model, due: readonly Run[], run: Run): boolean => {
  const isSibling = (other: Run): boolean => other.partitionKey === run.partitionKey;
  return (
    run.partitionKey === null ||
    (due.find(isSibling) === run &&
      ![...model.runs.values()].some((other) => isSibling(other) && other.holder !== null))
  );
};

/** A wait that is claimed has not been woken: its deadline has passed. */
const take = (run: Run, { worker, claimId }: Command & { op: "claim" }): Run => ({
  ...run,
  status: "executing",
  holder: worker,
  claimId,
  turn: 0,
  timedOut: run.timedOut || run.status === "awaiting_signal",
});

const describe = (model: Model, run: Run): ClaimedRun => ({
  id: run.id,
  step: run.step,
  attempt: run.attempt,
  crashes: run.crashes,
  timedOut: run.timedOut,
  awaited: awaitedBy(run),
  inbox: run.inbox,
  children:
    run.awaits?.kind === "children"
      ? run.awaits.ids.map((id) => ({ id, status: model.runs.get(id)!.status }))
      : [],
});
