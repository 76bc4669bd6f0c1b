import { describe, expect, it } from "vitest";
import { type Answer, apply, type Command, emptyModel, type Model } from "./run-model.js";
import { contains } from "./runs/match.js";
import type { ClaimedRun, NewRun, Outcome, Run } from "./runs/model.js";

/** A model that is driven command by command. */
const drive = () => {
  let model: Model = emptyModel;
  let claims = 0;
  const send = (command: Command): Answer => {
    const applied = apply(model, command);
    model = applied.model;
    return applied.answer;
  };
  const claimAll = (worker = "a", limit = 10): readonly ClaimedRun[] => {
    const answer = send({ op: "claim", worker, claimId: `claim-${++claims}`, queue: "default", limit });
    return answer.op === "claim" ? answer.runs : [];
  };
  const run = (id: number): Run => model.runs.get(id)!;
  send({ op: "register", worker: "a" });
  send({ op: "register", worker: "b" });
  return {
    send,
    run,
    claimAll,
    model: () => model,
    start: (given: NewRun = {}): number => (send({ op: "start", run: given }) as Answer & { op: "start" }).id,
    commit: (id: number, outcome: Outcome): Answer =>
      send({ op: "commit", run: id, claimId: run(id).claimId!, turn: run(id).turn, outcome }),
    signal: (id: number, name: string, payload: { [key: string]: number } = {}, dedupKey?: string): Answer =>
      send({ op: "signal", run: id, name, payload, ...(dedupKey === undefined ? {} : { dedupKey }) }),
  };
};

const awaitPay = (
  shown: readonly number[],
  options: { timeoutMs?: number; match?: { id: number } } = {},
): Outcome => ({
  kind: "await",
  names: ["pay"],
  step: "paid",
  shown,
  ...options,
});

describe("the sequential model", () => {
  it("an outcome sent again answers already, a stale one nothing but stale", () => {
    const { claimAll, commit, run, send, start } = drive();
    const id = start();
    claimAll();
    const { claimId } = run(id);
    commit(id, { kind: "keep", step: "two", shown: [] });
    const again: Command = {
      op: "commit",
      run: id,
      claimId: claimId!,
      turn: 0,
      outcome: { kind: "keep", step: "two", shown: [] },
    };
    expect(send(again)).toEqual({ op: "commit", verdict: "already" });
    send({ op: "lapse", worker: "a" });
    send({ op: "reap" });
    claimAll("b");
    expect(send({ ...again, turn: 1 })).toEqual({ op: "commit", verdict: "stale" });
    expect(run(id)).toMatchObject({ status: "executing", holder: "b", step: "two", attempt: 1, crashes: 1 });
  });

  it("an await that was met parks no more; a renewed one wakes only on what it was not shown", () => {
    const { claimAll, commit, run, signal, start } = drive();
    const id = start();
    claimAll();
    signal(id, "pay");
    signal(id, "other");
    commit(id, awaitPay([]));
    expect(run(id).status).toBe("runnable");
    expect(claimAll()[0]).toMatchObject({
      awaited: [{ seq: 1 }],
      inbox: [{ seq: 1 }, { seq: 2 }],
      timedOut: false,
    });
    commit(id, awaitPay([1]));
    expect(run(id).status).toBe("awaiting_signal");
    signal(id, "other");
    expect(run(id).status).toBe("awaiting_signal");
    signal(id, "pay");
    expect(claimAll()[0]!.awaited.map(({ seq }) => seq)).toEqual([1, 4]);
    signal(id, "pay");
    commit(id, { kind: "next", step: "last", shown: [1, 4] });
    expect(run(id).inbox.map(({ seq }) => seq)).toEqual([2, 3, 5]);
  });

  it("a match is contained in the payload", () => {
    const { claimAll, commit, run, signal, start } = drive();
    const id = start();
    claimAll();
    commit(id, awaitPay([], { match: { id: 1 } }));
    signal(id, "pay", { id: 2 });
    expect(run(id).status).toBe("awaiting_signal");
    signal(id, "pay", { id: 1, more: 2 });
    expect(claimAll()[0]!.awaited.map(({ seq }) => seq)).toEqual([2]);
  });

  it("a timeout survives retry and crash, and ends with progress", () => {
    const { claimAll, commit, run, send, start } = drive();
    const id = start();
    claimAll();
    commit(id, awaitPay([], { timeoutMs: 100 }));
    expect(claimAll()).toEqual([]);
    send({ op: "advance", ms: 100 });
    expect(claimAll()[0]!.timedOut).toBe(true);
    commit(id, { kind: "retry", delayMs: 0 });
    expect(claimAll()[0]).toMatchObject({ timedOut: true, attempt: 1 });
    send({ op: "lapse", worker: "a" });
    send({ op: "reap" });
    expect(claimAll("b")[0]).toMatchObject({ timedOut: true, attempt: 2, crashes: 1 });
    commit(id, { kind: "keep", step: "on", shown: [] });
    expect(run(id)).toMatchObject({ timedOut: false, awaits: null, attempt: 0, crashes: 0 });
  });

  it("a signal before the late claim of a due wait wins over its timeout", () => {
    const { claimAll, commit, send, signal, start } = drive();
    const id = start();
    claimAll();
    commit(id, awaitPay([], { timeoutMs: 100 }));
    send({ op: "advance", ms: 200 });
    signal(id, "pay");
    expect(claimAll()[0]).toMatchObject({ timedOut: false, awaited: [{ seq: 1 }] });
  });

  it("a dedup key is remembered when its signal is consumed and when the run has ended", () => {
    const { claimAll, commit, run, signal, start } = drive();
    const id = start();
    claimAll();
    signal(id, "pay", {}, "once");
    expect(signal(id, "pay", {}, "once")).toEqual({ op: "signal", verdict: "duplicate" });
    commit(id, { kind: "done" });
    expect(run(id).inbox).toEqual([]);
    expect(signal(id, "pay", {}, "once")).toEqual({ op: "signal", verdict: "duplicate" });
    expect(signal(id, "pay")).toEqual({ op: "signal", verdict: "ended" });
    expect(signal(99, "pay")).toEqual({ op: "signal", verdict: "not_found" });
  });

  it("a parent goes on once, when the last of its children has ended", () => {
    const { claimAll, commit, run, send, start } = drive();
    const id = start({ retentionMs: 0 });
    claimAll();
    commit(id, { kind: "spawn", step: "joined", shown: [], children: [{}, { delayMs: 50 }] });
    expect(run(id).status).toBe("awaiting_children");
    expect(claimAll().map((child) => child.id)).toEqual([2]);
    commit(2, { kind: "stop" });
    expect(send({ op: "sweep" })).toEqual({ op: "sweep", swept: [] });
    send({ op: "cancel", run: 3 });
    expect(claimAll()[0]).toMatchObject({
      id,
      step: "joined",
      children: [
        { id: 2, status: "failed" },
        { id: 3, status: "cancelled" },
      ],
    });
    commit(id, { kind: "spawn", step: "again", shown: [], children: [] });
    expect(run(id).status).toBe("runnable");
    expect(send({ op: "sweep" })).toEqual({ op: "sweep", swept: [2, 3] });
  });

  it("runs of one key are claimed one at a time and in order, also while a cancelled one is not released", () => {
    const { claimAll, model, run, send, start } = drive();
    const first = start({ partitionKey: "k" });
    const second = start({ partitionKey: "k" });
    const urgent = start({ partitionKey: "k", priority: -1 });
    expect(claimAll().map(({ id }) => id)).toEqual([urgent]);
    send({ op: "cancel", run: urgent });
    expect(run(urgent)).toMatchObject({ status: "cancelled", holder: "a" });
    expect(claimAll("b")).toEqual([]);
    expect(send({ op: "release", run: urgent, claimId: run(urgent).claimId! })).toEqual({
      op: "release",
      isReleased: true,
    });
    expect(claimAll("b").map(({ id }) => id)).toEqual([first]);
    send({ op: "lapse", worker: "b" });
    expect(send({ op: "reap" })).toEqual({ op: "reap", reaped: 1 });
    expect(model().runs.get(second)!.status).toBe("runnable");
    expect(claimAll().map(({ id, attempt }) => [id, attempt])).toEqual([[first, 1]]);
  });

  it("from the second crash on a run is put off", () => {
    const { claimAll, run, send, start } = drive();
    const id = start();
    for (const worker of ["a", "b"]) {
      claimAll(worker);
      send({ op: "lapse", worker });
      send({ op: "reap" });
    }
    expect(run(id)).toMatchObject({ attempt: 2, crashes: 2, eligibleAt: 4000, holder: null });
  });

  it("a cascading cancel ends all below and wakes nobody among them", () => {
    const { claimAll, commit, run, send, start } = drive();
    const id = start();
    claimAll();
    commit(id, { kind: "spawn", step: "joined", shown: [], children: [{}] });
    claimAll();
    commit(2, { kind: "spawn", step: "joined", shown: [], children: [{}] });
    expect(send({ op: "cancel", run: id, cascade: true })).toEqual({
      op: "cancel",
      verdict: "cancelled",
      cancelled: [1, 2, 3],
    });
    expect([1, 2, 3].map((each) => run(each).status)).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(send({ op: "cancel", run: id })).toMatchObject({ verdict: "already" });
  });

  it("containment is that of JSONB", () => {
    expect(contains({ a: [1, { b: 2, c: 3 }] }, { a: [{ b: 2 }] })).toBe(true);
    expect(contains({ a: [1] }, { a: 1 })).toBe(false);
    expect(contains([1, 2], 1)).toBe(true);
    expect(contains({}, [])).toBe(false);
    expect(contains(1, {})).toBe(false);
    expect(contains({ a: null }, { a: null })).toBe(true);
  });
});
