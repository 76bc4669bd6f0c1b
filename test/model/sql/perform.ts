/**
 * Carries out commands of the model through the store, and answers in the model's words. Several commands are one call of
 * the store, which takes signals and commits in batches.
 */

import type {
  ClaimedRun as StoredClaim,
  Commit,
  Transition,
  Verdict,
} from "../../../packages/pawl/dist/store/store.js";
import { aRun } from "../../support/store.js";
import type { Answer, Command, Model } from "../run-model.js";
import { served } from "../runs/claim.js";
import { longAgoMs } from "../runs/commit.js";
import type { ClaimedRun, NewRun, Outcome } from "../runs/model.js";
import type { SequenceDatabase } from "./database.js";
import type { CommitCommand } from "./session.js";

const storedId = (id: number): string => String(id * 64);

const modelId = (id: string): number => Number(id) / 64;

/** `isPatient: false` commits run by run, the way of those whose batch has failed. */
export const perform = async (
  database: SequenceDatabase,
  model: Model,
  commands: readonly Command[],
  { isPatient }: { readonly isPatient: boolean },
): Promise<readonly Answer[]> => {
  const { store } = database;
  if (commands.every((command) => command.op === "signal")) {
    const signals = commands.map(({ run, name, payload, dedupKey }) => ({
      runId: storedId(run),
      name,
      payload: JSON.stringify(payload),
      dedupKey: dedupKey ?? null,
    }));
    const { verdicts } = await store.signal(signals, { patient: true });
    return verdicts.map((verdict) => ({ op: "signal", verdict }));
  }
  if (commands.every((command) => command.op === "commit")) {
    const commits = commands.map((command) => commitOf(model, command));
    const { verdicts } = await store.commit(commits, { patient: isPatient });
    return Promise.all(verdicts.map((verdict) => committed(database, verdict)));
  }
  return [await performOne(database, model, commands[0]!)];
};

const performOne = async (database: SequenceDatabase, model: Model, command: Command): Promise<Answer> => {
  const { store, sql } = database;
  switch (command.op) {
    case "start": {
      const claim = command.claim && { workerId: command.claim.worker, claimId: command.claim.claimId };
      const [started] = await store.start([{ ...newRun(model, command.run), direct: claim !== undefined }], {
        allOrNothing: false,
        claim: claim ?? null,
      });
      return { op: "start", id: modelId(started!.runId) };
    }
    case "register":
      await database.register(command.worker);
      return { op: "register" };
    case "lapse":
      await sql("update workers set seen_at = seen_at - interval '2 hours' where id = $1", [command.worker]);
      return { op: "lapse" };
    case "claim": {
      const { worker: workerId, claimId, queue, limit } = command;
      const which = { names: served, versions: served.map(() => 1), floor: null };
      const claimed = await store.claim({ workerId, claimId, queue, limit, ...which });
      const runs = await Promise.all(claimed.runs.map((run) => describe(database, run)));
      return { op: "claim", runs, more: claimed.more, dueMs: claimed.dueMs && Math.round(claimed.dueMs) };
    }
    case "release": {
      const { run, claimId } = command;
      const released = await store.release([{ runId: storedId(run), claimId }]);
      return { op: "release", isReleased: released.length > 0 };
    }
    case "cancel": {
      const { run, cascade = false } = command;
      const { verdict, runIds } = await store.cancel(storedId(run), { reason: null, cascade });
      return { op: "cancel", verdict, cancelled: runIds.map(modelId) };
    }
    case "beat": {
      const [row] = await sql<{ alive: boolean; cancelled: string | null; held: string | null }>(
        "select * from beat($1, 0)",
        [command.worker],
      );
      const ids = (json: string | null): number[] =>
        json === null
          ? []
          : Object.keys(JSON.parse(json) as object)
              .map(modelId)
              .toSorted((a, b) => a - b);
      return { op: "beat", isAlive: row!.alive, cancelled: ids(row!.cancelled), held: ids(row!.held) };
    }
    case "reap":
      return { op: "reap", reaped: await store.reap(1000) };
    case "repair": {
      const { queues } = await store.repairKeys(null, 1000);
      if (queues.length > 0) throw new Error(`the repair had to let runs of ${queues.join(", ")} in`);
      return { op: "repair" };
    }
    case "advance":
      await sql("update public.clock set ms = ms + $1", [command.ms]);
      return { op: "advance" };
    case "sweep": {
      const { swept: count } = await store.sweep(1000);
      const left = new Set((await database.look()).runs.map(({ id }) => id));
      const swept = [...model.runs.keys()].filter((id) => !left.has(id));
      if (count !== swept.length) throw new Error(`sweep answers ${count} for ${swept.length} runs`);
      return { op: "sweep", swept };
    }
    case "signal":
    case "commit":
      throw new Error(`${command.op} goes in batches`);
  }
};

const newRun = (model: Model, { name, partitionKey, queue, priority, delayMs, retentionMs, step }: NewRun) =>
  aRun({
    name: name ?? "counter",
    step: step ?? "start",
    queue: queue ?? "default",
    priority: priority ?? 0,
    partitionKey: partitionKey ?? null,
    ...(name === "ghost"
      ? { at: new Date(model.now + (delayMs ?? 0) - longAgoMs) }
      : { delayMs: delayMs ?? null }),
    retentionMs: retentionMs ?? 0,
  });

/** With what the claim of the run has told its worker: parent and key. */
const commitOf = (
  model: Model,
  { run: id, claimId, turn, inboxSeq, next, outcome }: CommitCommand,
): Commit => {
  const run = model.runs.get(id);
  return {
    runId: storedId(id),
    claimId,
    turn,
    inboxSeq: inboxSeq ?? 0,
    parentId: run === undefined || run.parentId === null ? null : storedId(run.parentId),
    partitionKey: run?.partitionKey ?? null,
    next: next === undefined ? null : { workerId: next.worker, claimId: next.claimId },
    transition: transitionOf(model, outcome),
  };
};

const transitionOf = (model: Model, outcome: Outcome): Transition => {
  switch (outcome.kind) {
    case "keep":
      return { kind: "keep", step: outcome.step, state: null, consumed: outcome.shown };
    case "next":
      return {
        kind: "next",
        step: outcome.step,
        state: null,
        priority: outcome.priority ?? null,
        partitionKey: outcome.partitionKey,
        rateLimit: null,
        weight: null,
        consumed: outcome.shown,
      };
    case "retry":
      return { kind: "retry", step: null, state: null, delayMs: outcome.delayMs, error: null };
    case "await":
      return {
        kind: "await",
        step: outcome.step,
        state: null,
        names: outcome.names,
        match: outcome.match === undefined ? null : JSON.stringify(outcome.match),
        delayMs: outcome.timeoutMs ?? null,
        shown: outcome.shown,
      };
    case "spawn":
      return {
        kind: "spawn",
        step: outcome.step,
        state: null,
        children: outcome.children.map((child) => newRun(model, child)),
        consumed: outcome.shown,
      };
    case "done":
      return { kind: "done", step: null, result: "null" };
    case "stop":
      return { kind: "stop", step: null, error: "{}" };
  }
};

const committed = async (database: SequenceDatabase, verdict: Verdict): Promise<Answer> => {
  if (verdict.kind === "busy" || verdict.kind === "failed") {
    throw new Error(`a commit is answered ${JSON.stringify(verdict)}`);
  }
  if (verdict.kind !== "committed") {
    return { op: "commit", verdict: verdict.kind };
  }
  return {
    op: "commit",
    verdict: "committed",
    ...(verdict.inboxSeq === null ? {} : { inboxSeq: verdict.inboxSeq }),
    ...(verdict.handed === null ? {} : { handed: await describe(database, verdict.handed) }),
  };
};

const describe = async ({ store }: SequenceDatabase, run: StoredClaim): Promise<ClaimedRun> => {
  const children = run.children === null ? [] : await store.children(run.runId, -1);
  const inbox = run.inbox!.map(({ seq, name, payload }) => ({ seq, name, payload }));
  return {
    id: modelId(run.runId),
    step: run.step!,
    priority: run.priority,
    partitionKey: run.partitionKey,
    parentId: run.parentId === null ? null : modelId(run.parentId),
    attempt: run.attempt,
    crashes: run.crashes,
    timedOut: run.timedOut,
    inboxSeq: run.inboxSeq,
    awaited: inbox.filter((_, index) => run.inbox![index]!.matched),
    inbox,
    children: children.map(({ runId, phase }) => ({ id: modelId(runId), status: phase })),
  };
};
