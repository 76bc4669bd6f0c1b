/**
 * The sequential model's commit: one outcome under the guard (claim id, turn, executing). Progress consumes what was
 * shown; an await parks unless a match waits that was not shown; the end of a run clears its inbox and counts down
 * its parent, which goes on when the last of its children has ended. Who frees a key may be handed the next run in line.
 */

import { describe, firstOfKey, isServed, take } from "./claim.js";

import { isMatch } from "./match.js";
import {
  type Applied,
  type Awaits,
  type Command,
  type Model,
  type NewRun,
  type Outcome,
  put,
  type Run,
} from "./model.js";

export const commit = (model: Model, command: Command & { op: "commit" }): Applied => {
  const run = model.runs.get(command.run);
  const isMine = run !== undefined && run.claimId === command.claimId;
  if (isMine && run.status === "executing" && run.turn === command.turn) {
    const after = move(model, { ...run, turn: run.turn + 1 }, command.outcome);
    return command.outcome.kind === "keep" ? kept(after, run, command) : handOver(after, run, command);
  }
  const verdict = isMine && run.turn === command.turn + 1 ? "already" : "stale";
  return { model, answer: { op: "commit", verdict } };
};

const kept = (model: Model, { inboxSeq }: Run, command: Command & { op: "commit" }): Applied => ({
  model,
  answer: {
    op: "commit",
    verdict: "committed",
    ...(inboxSeq === (command.inboxSeq ?? 0) ? {} : { inboxSeq }),
  },
});

/** The claim has ended: the next run in line for the key that it held is claimed, if the commit asks for that. */
const handOver = (model: Model, freedBy: Run, { next }: Command & { op: "commit" }): Applied => {
  const first = freedBy.partitionKey === null ? undefined : firstOfKey(model, freedBy.partitionKey);
  if (
    next === undefined ||
    model.workers.get(next.worker) !== "live" ||
    first?.queue !== freedBy.queue ||
    first.id === freedBy.id ||
    !isServed(first)
  ) {
    return { model, answer: { op: "commit", verdict: "committed" } };
  }
  const taken = take(first, next);
  const after = put(model, taken);
  return {
    model: after,
    answer: { op: "commit", verdict: "committed", handed: describe(after, taken) },
  };
};

/** Runs that nobody serves have been due for so long that they are not in line for their keys. */
export const longAgoMs = 3_600_000;

/** A run that has not been claimed yet. */
export const newRun = (model: Model, given: NewRun, parentId: number | null): Run => ({
  id: model.lastId + 1,
  status: "runnable",
  name: given.name ?? "counter",
  queue: given.queue ?? "default",
  priority: given.priority ?? 0,
  partitionKey: given.partitionKey ?? null,
  step: given.step ?? "start",
  attempt: 0,
  crashes: 0,
  eligibleAt: model.now + (given.delayMs ?? 0) - (given.name === "ghost" ? longAgoMs : 0),
  holder: null,
  claimId: null,
  turn: 0,
  awaits: null,
  shown: [],
  timedOut: false,
  inbox: [],
  inboxSeq: 0,
  dedupKeys: [],
  parentId,
  childrenPending: 0,
  retentionMs: given.retentionMs ?? 0,
  expiresAt: null,
});

export const add = (model: Model, run: Run): Model => ({ ...put(model, run), lastId: run.id });

/**
 * The run ends as `status`, and its parent may go on. An executing run that is cancelled keeps its holder. A run that
 * failed or was cancelled keeps its wait, for a rerun.
 */
export const end = (model: Model, run: Run, status: "done" | "failed" | "cancelled"): Model => {
  const ended: Run = {
    ...run,
    status,
    holder: status === "cancelled" ? run.holder : null,
    ...(status === "done" ? { awaits: null, shown: [], timedOut: false } : {}),
    inbox: [],
    expiresAt: model.now + run.retentionMs,
  };
  const parent = run.parentId === null ? undefined : model.runs.get(run.parentId);
  if (parent === undefined) {
    return put(model, ended);
  }
  const counted: Run = { ...parent, childrenPending: parent.childrenPending - 1 };
  const isLast = counted.status === "awaiting_children" && counted.childrenPending === 0;
  return put(model, ended, isLast ? wake(model, counted) : counted);
};

export const wake = (model: Model, run: Run): Run => ({
  ...run,
  status: "runnable",
  eligibleAt: Math.min(run.eligibleAt, model.now),
});

const move = (model: Model, run: Run, outcome: Outcome): Model => {
  switch (outcome.kind) {
    case "keep":
      return put(model, progress(run, outcome.step, outcome.shown));
    case "next":
      return put(model, {
        ...progress(run, outcome.step, outcome.shown),
        status: "runnable",
        holder: null,
        eligibleAt: model.now,
        priority: outcome.priority ?? run.priority,
        partitionKey: outcome.partitionKey === undefined ? run.partitionKey : outcome.partitionKey,
      });
    case "retry":
      return put(model, {
        ...run,
        status: "runnable",
        holder: null,
        attempt: run.attempt + 1,
        eligibleAt: model.now + outcome.delayMs,
      });
    case "await":
      return put(model, park(model, run, outcome));
    case "spawn":
      return spawn(model, run, outcome);
    case "done":
      return end(model, { ...run, crashes: 0 }, "done");
    case "stop":
      return end(model, { ...run, crashes: 0 }, "failed");
  }
};

const progress = (run: Run, step: string, consumed: readonly number[]): Run => ({
  ...run,
  step,
  attempt: 0,
  crashes: 0,
  awaits: null,
  shown: [],
  timedOut: false,
  inbox: run.inbox.filter(({ seq }) => !consumed.includes(seq)),
});

const park = (model: Model, run: Run, outcome: Outcome & { kind: "await" }): Run => {
  const awaits: Awaits = { kind: "signal", names: outcome.names, match: outcome.match ?? null, upTo: null };
  const isMet = run.inbox.some((signal) => isMatch(awaits, signal) && !outcome.shown.includes(signal.seq));
  return {
    ...progress(run, outcome.step, []),
    holder: null,
    awaits,
    shown: outcome.shown,
    status: isMet ? "runnable" : "awaiting_signal",
    eligibleAt: model.now + (isMet ? 0 : (outcome.timeoutMs ?? Infinity)),
  };
};

const spawn = (model: Model, run: Run, outcome: Outcome & { kind: "spawn" }): Model => {
  let after = model;
  const ids = outcome.children.map((given) => {
    const child = newRun(after, given, run.id);
    after = add(after, child);
    return child.id;
  });
  return put(after, {
    ...progress(run, outcome.step, outcome.shown),
    holder: null,
    awaits: { kind: "children", ids },
    childrenPending: ids.length,
    status: ids.length > 0 ? "awaiting_children" : "runnable",
    eligibleAt: ids.length > 0 ? Infinity : model.now,
  });
};
