/**
 * The engine's rules as a sequential model: one call at a time, nothing in between. `apply` says what a command answers
 * and what it leaves behind (status, inbox, awaited, timed out, holders), and changes nothing it was given. Tests run
 * the same commands against the database and compare. Interleavings are the business of `protocol.ts`.
 *
 * Left to other tests: unique and idempotency keys, rate limits, definitions that nobody serves, journals, full inboxes.
 */

import { claim, take } from "./runs/claim.js";
import { add, commit, end, newRun, wake } from "./runs/commit.js";
import { isMatch } from "./runs/match.js";
import {
  type Answer,
  type Applied,
  type Command,
  isTerminal,
  type Model,
  put,
  type Run,
} from "./runs/model.js";

export type { Answer, Applied, Command, Model } from "./runs/model.js";

const maxInbox = 10_000;
const maxCrashDelayMs = 60_000;

export const emptyModel: Model = { now: 0, runs: new Map(), lastId: 0, workers: new Map() };

export const apply = (model: Model, command: Command): Applied => {
  switch (command.op) {
    case "start": {
      const waiting = newRun(model, command.run, null);
      const run = command.claim === undefined ? waiting : take(waiting, command.claim);
      return { model: add(model, run), answer: { op: "start", id: run.id } };
    }
    case "register":
      return setWorker(model, command.op, command.worker, "live");
    case "lapse":
      return setWorker(model, command.op, command.worker, "lapsed");
    case "claim":
      return claim(model, command);
    case "commit":
      return commit(model, command);
    case "release":
      return release(model, command);
    case "signal":
      return signal(model, command);
    case "cancel":
      return cancel(model, command);
    case "beat":
      return beat(model, command.worker);
    case "reap":
      return reap(model);
    case "repair":
      return { model, answer: { op: "repair" } };
    case "advance":
      return { model: { ...model, now: model.now + command.ms }, answer: { op: "advance" } };
    case "sweep":
      return sweep(model);
  }
};

const setWorker = (
  model: Model,
  op: "register" | "lapse",
  worker: string,
  lease: "live" | "lapsed",
): Applied => ({
  model: { ...model, workers: new Map([...model.workers, [worker, lease]]) },
  answer: { op },
});

/** The claim ends without an outcome. The attempt is unchanged, and so is when it is due. */
const letGo = (run: Run): Run => ({
  ...run,
  holder: null,
  status: run.status === "executing" ? "runnable" : run.status,
});

const release = (model: Model, command: Command & { op: "release" }): Applied => {
  const run = model.runs.get(command.run);
  const isReleased = run !== undefined && run.claimId === command.claimId && run.holder !== null;
  return {
    model: isReleased ? put(model, letGo(run)) : model,
    answer: { op: "release", isReleased },
  };
};

const signal = (model: Model, command: Command & { op: "signal" }): Applied => {
  const { name, payload, dedupKey } = command;
  const answer = (verdict: (Answer & { op: "signal" })["verdict"]): Answer => ({ op: "signal", verdict });
  const run = model.runs.get(command.run);
  if (run === undefined) {
    return { model, answer: answer("not_found") };
  }
  if (dedupKey !== undefined && run.dedupKeys.includes(dedupKey)) {
    return { model, answer: answer("duplicate") };
  }
  if (isTerminal(run)) {
    return { model, answer: answer("ended") };
  }
  if (run.inbox.length >= maxInbox) {
    return { model, answer: answer("full") };
  }
  const arrived = { seq: run.inboxSeq + 1, name, payload };
  const delivered: Run = {
    ...run,
    inbox: [...run.inbox, arrived],
    inboxSeq: arrived.seq,
    dedupKeys: dedupKey === undefined ? run.dedupKeys : [...run.dedupKeys, dedupKey],
  };
  const isWoken = run.status === "awaiting_signal" && isMatch(run.awaits, arrived);
  return { model: put(model, isWoken ? wake(model, delivered) : delivered), answer: answer("delivered") };
};

const cancel = (model: Model, command: Command & { op: "cancel" }): Applied => {
  const run = model.runs.get(command.run);
  const verdict =
    run === undefined
      ? "not_found"
      : run.status === "cancelled"
        ? "already"
        : isTerminal(run)
          ? "ended"
          : "cancelled";
  const tree = command.cascade ? descendants(model, command.run) : [command.run];
  const isNothing = verdict === "not_found" || verdict === "ended";
  const cancelled = isNothing ? [] : tree.filter((id) => !isTerminal(model.runs.get(id)!));
  // from the top down, so that no run of the tree is woken by the end of those below it
  const after = cancelled.reduce((left, id) => end(left, left.runs.get(id)!, "cancelled"), model);
  return { model: after, answer: { op: "cancel", verdict, cancelled } };
};

/** A run and all below it; parents have lower ids than their children. */
const descendants = (model: Model, root: number): number[] => {
  const tree = new Set([root]);
  for (const run of [...model.runs.values()].toSorted((a, b) => a.id - b.id)) {
    if (run.parentId !== null && tree.has(run.parentId)) {
      tree.add(run.id);
    }
  }
  return [...tree];
};

const beat = (model: Model, worker: string): Applied => {
  const isAlive = model.workers.get(worker) === "live";
  const held = [...model.runs.values()].filter(({ holder }) => isAlive && holder === worker);
  const cancelled = held.filter(({ status }) => status === "cancelled");
  const ids = (runs: readonly Run[]): number[] => runs.map(({ id }) => id).toSorted((a, b) => a - b);
  return { model, answer: { op: "beat", isAlive, cancelled: ids(cancelled), held: ids(held) } };
};

/** Workers whose lease has passed are gone; from the second crash on a run is put off. */
const reap = (model: Model): Applied => {
  const held = [...model.runs.values()].filter(
    ({ holder }) => holder !== null && model.workers.get(holder) !== "live",
  );
  const left = held.map((run): Run => {
    if (run.status !== "executing") {
      return letGo(run);
    }
    const crashes = run.crashes + 1;
    const delayMs = Math.min(1000 * 2 ** crashes, maxCrashDelayMs);
    const eligibleAt = crashes === 1 ? run.eligibleAt : model.now + delayMs;
    return { ...letGo(run), attempt: run.attempt + 1, crashes, eligibleAt };
  });
  const workers = new Map([...model.workers].filter(([, lease]) => lease === "live"));
  return { model: { ...put(model, ...left), workers }, answer: { op: "reap", reaped: left.length } };
};

/** Terminal runs past their retention go, but none that is held, and no child that its parent's step still sees. */
const sweep = (model: Model): Applied => {
  const isSeen = ({ id, parentId }: Run): boolean => {
    const parent = parentId === null ? undefined : model.runs.get(parentId);
    const awaits = parent?.status === "cancelled" ? undefined : parent?.awaits;
    return awaits?.kind === "children" && awaits.ids.includes(id);
  };
  const swept = [...model.runs.values()].filter(
    (run) => isTerminal(run) && run.expiresAt! <= model.now && run.holder === null && !isSeen(run),
  );
  const ids = swept.map(({ id }) => id);
  return {
    model: { ...model, runs: new Map([...model.runs].filter(([id]) => !ids.includes(id))) },
    answer: { op: "sweep", swept: ids },
  };
};
