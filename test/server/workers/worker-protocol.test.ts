import { beforeEach, describe, expect, it } from "vitest";
import {
  claim,
  newClaim,
  nextQueue,
  pawl,
  post,
  register,
  sql,
  start,
} from "../../support/http/worker-protocol.js";

let queue = "";
beforeEach(() => {
  queue = nextQueue();
});

const notGiven = [
  "version",
  "kind",
  "queue",
  "priority",
  "step",
  "delayMs",
  "at",
  "retentionMs",
  "idempotencyKey",
  "uniqueKeyBase64",
  "uniqueScope",
  "partitionKey",
  "rateLimit",
  "weight",
];
const aChild = {
  name: "work",
  ...Object.fromEntries(notGiven.map((member) => [member, null])),
  input: "null",
};

describe("what a worker commits", () => {
  const commitOf = (runId: string, claimId: string, transition: object | null) => ({
    commits: [
      { runId, claimId, turn: 0, inboxSeq: 0, parentId: null, partitionKey: null, next: null, transition },
    ],
    patient: true,
  });

  it("is told at once to who waits for the run", async () => {
    const runId = await start(queue);
    await register(`a-${queue}`, queue);
    const claimId = newClaim();
    await claim(`a-${queue}`, queue, { claimId });
    const result = pawl.result(runId);
    const body = commitOf(runId, claimId, { kind: "done", step: null, result: '{"n":1}' });
    expect((await post("commit", body)).body).toMatchObject({ verdicts: [{ kind: "committed" }] });
    expect(await result).toEqual({ n: 1 });
    expect((await post("commit", body)).body).toMatchObject({ verdicts: [{ kind: "already" }] });
  });

  it("is refused as stale with the claim of another", async () => {
    const runId = await start(queue);
    await register(`a-${queue}`, queue);
    await claim(`a-${queue}`, queue);
    const body = commitOf(runId, newClaim(), { kind: "done", step: null, result: "1" });
    expect((await post("commit", body)).body).toEqual({ verdicts: [{ kind: "stale" }] });
    expect((await pawl.runs.get(runId)).status).toBe("running");
  });

  it.each([
    ["an unknown kind", { kind: "finish" }, "body.commits.0.transition.kind"],
    ["a member that is missing", { kind: "done", step: null }, "body.commits.0.transition.result"],
    [
      "one that is unknown",
      { kind: "done", step: null, result: "1", also: 1 },
      "body.commits.0.transition.also",
    ],
    [
      "one of another type",
      { kind: "retry", step: null, state: null, delayMs: "1s", error: null },
      "body.commits.0.transition.delayMs",
    ],
    [
      "a child that is none",
      { kind: "spawn", step: "a", state: null, consumed: [], children: [{ name: "A B" }] },
      /^body\.commits\.0\.transition\.children\.0\./,
    ],
    ["no kind", { step: null, result: "1" }, "body.commits.0.transition.kind"],
    ["a transition that is none", null, "body.commits.0.transition"],
    [
      "a match that is not JSON",
      { kind: "await", step: "a", state: null, names: ["x"], match: "{", delayMs: null, shown: [] },
      "body.commits.0.transition.match",
    ],
    [
      "a time that is none",
      { kind: "suspend", names: [], matches: {}, after: 0, dueAt: "2030-99", steps: [] },
      "body.commits.0.transition.dueAt",
    ],
    [
      "a child whose time is none",
      {
        kind: "spawn",
        step: "a",
        state: null,
        consumed: [],
        children: [aChild, { ...aChild, at: "2030-99" }],
      },
      "body.commits.0.transition.children.1.at",
    ],
  ])("is refused with %s, by its name, and nothing is written", async (_what, transition, field) => {
    const runId = await start(queue);
    await register(`a-${queue}`, queue);
    const claimId = newClaim();
    await claim(`a-${queue}`, queue, { claimId });
    const answer = await post("commit", commitOf(runId, claimId, transition));
    expect(answer.status).toBe(422);
    if (field instanceof RegExp) expect(answer.body["field"]).toMatch(field);
    else expect(answer.body).toMatchObject({ code: "InvalidOption", field });
    expect((await pawl.runs.get(runId)).phase).toBe("executing");
  });

  it("is an error of its run alone if the database refuses it", async () => {
    const runId = await start(queue);
    await register(`a-${queue}`, queue);
    const claimId = newClaim();
    await claim(`a-${queue}`, queue, { claimId });
    const answer = await post("commit", commitOf(runId, claimId, { kind: "done", step: null, result: "{" }));
    expect(answer.body).toMatchObject({ verdicts: [{ kind: "failed", code: "22P02" }] });
  });
});

describe("a registration", () => {
  it("with a lease shorter than a second is refused, and nothing is written", async () => {
    const definitions = [
      { name: "hasty", version: 1, kind: "job", queue: "hasty", priority: 0, retentionMs: 0 },
    ];
    const body = { workerId: "hasty", leaseMs: 999, queues: ["hasty"], info: {}, definitions };
    const answer = await post("register", body);
    expect(answer).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining("leaseMs") as string },
    });
    expect(await sql("select from workers where id = 'hasty'")).toEqual([]);
  });
});

describe("a heartbeat", () => {
  it("tells which runs were cancelled, and what the worker holds", async () => {
    const runId = await start(queue);
    const workerId = await register(`a-${queue}`, queue);
    const claimId = newClaim();
    await claim(workerId, queue, { claimId });
    expect((await post("heartbeat", { workerId, since: "0" })).body).toEqual({
      alive: true,
      cancelled: {},
      held: { [runId]: claimId },
      databaseHeld: false,
      schemaProblem: null,
      timeline: expect.any(String),
    });
    expect((await post("holdings", { workerId })).body).toEqual({ held: { [runId]: claimId } });
    expect((await post("holdings", { workerId: "nobody" })).body).toEqual({ held: {} });
    await pawl.runs.cancel(runId);
    expect((await post("heartbeat", { workerId, since: null })).body).toEqual({
      alive: true,
      cancelled: { [runId]: claimId },
      held: null,
      databaseHeld: false,
      schemaProblem: null,
      timeline: expect.any(String),
    });
    expect((await post("holdings", { workerId })).body).toEqual({ held: { [runId]: claimId } });
    expect((await post("heartbeat", { workerId: "nobody", since: null })).body).toMatchObject({
      alive: false,
    });
  });
});

describe("what a worker records", () => {
  it.each([
    ["an unknown op", { op: "nap" }, "body.entries.0.change.op"],
    ["a member that is missing", { op: "wait", event: "x", match: null }, "body.entries.0.change.delayMs"],
    [
      "one of another type",
      { op: "run", attempt: 0, output: 1, error: null, tookMs: 1 },
      "body.entries.0.change.output",
    ],
    ["one of another kind", { op: "due", delayMs: 1 }, "body.entries.0.change.delayMs"],
    ["a sleep without an end", { op: "sleep", delayMs: null, at: null }, "body.entries.0.change"],
    ["a time that is none", { op: "sleep", delayMs: null, at: "2030-99" }, "body.entries.0.change.at"],
    [
      "a match that is not JSON",
      { op: "wait", event: "x", match: "{", delayMs: 1 },
      "body.entries.0.change.match",
    ],
    ["a child that is none", { op: "invoke", child: { name: "work" } }, /^body\.entries\.0\.change\.child\./],
  ])("is refused with %s, by its name", async (_what, change, field) => {
    const entry = { runId: "64", claimId: "1", name: "a", seq: 1, inboxSeq: 0, change };
    const answer = await post("record", { entries: [entry], patient: true });
    expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    expect(answer.body["field"]).toEqual(
      field instanceof RegExp ? (expect.stringMatching(field) as string) : field,
    );
  });
});

describe("a workflow and a machine by hand", () => {
  const definition = (name: string, kind: string) => [
    { name, version: 1, kind, queue, priority: 0, retentionMs: 1_000 },
  ];
  /** Registers for this definition; gives a claim of its runs. */
  async function serving(name: string, kind: string): Promise<() => Promise<Held>> {
    const workerId = `${name}-${queue}`;
    const definitions = definition(name, kind);
    await post("register", { workerId, leaseMs: 60_000, queues: [queue], info: {}, definitions });
    return async () => {
      const claimId = newClaim();
      const { body } = await post<{ runs: Held["run"][] }>("claim", {
        workerId,
        claimId,
        queue,
        limit: 1,
        definitions: [{ name, version: 1 }],
        waitSeconds: 20,
      });
      return { claimId, run: body.runs[0]! };
    };
  }
  interface Held {
    readonly claimId: string;
    readonly run: {
      readonly runId: string;
      readonly inboxSeq: number;
      readonly journal: readonly { name: string; seq: number | null; dueAt: string | null }[];
      readonly inbox: readonly { seq: number; matched: boolean }[];
      readonly children: number | null;
      readonly timedOut: boolean;
      readonly step: string | null;
    };
  }
  const commit = async ({ claimId, run }: Held, transition: object, turn = 0): Promise<unknown> => {
    const { runId, inboxSeq } = run;
    const item = { runId, claimId, turn, inboxSeq, parentId: null, partitionKey: null, next: null };
    const body = { commits: [{ ...item, transition }], patient: true };
    return (await post<{ verdicts: unknown[] }>("commit", body)).body.verdicts[0];
  };
  const record = async ({ claimId, run }: Held, name: string, seq: number, change: object) => {
    const entry = { runId: run.runId, claimId, name, seq, inboxSeq: run.inboxSeq, change };
    const answer = await post<{ verdicts: unknown[] }>("record", { entries: [entry], patient: true });
    return answer.body.verdicts[0];
  };

  it("a step that is recorded again is answered with what holds", async () => {
    const claimNext = await serving("flow", "workflow");
    await pawl.start("flow", null, { version: 1, queue });
    const held = await claimNext();
    const change = { op: "run", attempt: 0, output: "1", error: null, tookMs: 1 };
    expect(await record(held, "a", 1, change)).toEqual({ kind: "recorded", inboxSeq: null });
    expect(await record(held, "a", 1, { ...change, output: "2" })).toEqual({
      kind: "done",
      seq: 1,
      output: 1,
      error: null,
    });
  });

  it("a signal between the record of a wait and its suspension wakes the run at once", async () => {
    const claimNext = await serving("flow", "workflow");
    const { runId } = await pawl.start("flow", null, { version: 1, queue });
    const held = await claimNext();
    const change = { op: "wait", event: "go", match: '{"n":1}', delayMs: null };
    expect(await record(held, "w", 1, change)).toMatchObject({ kind: "pending", inboxSeq: 0, dueAt: null });
    await pawl.signal(runId, "go", { n: 1 });
    const suspend = {
      kind: "suspend",
      names: ["go"],
      matches: { go: '{"n":1}' },
      after: 0,
      dueAt: null,
      steps: ["w"],
    };
    expect(await commit(held, suspend)).toMatchObject({ kind: "committed" });
    const again = await claimNext();
    expect(again.run).toMatchObject({ journal: [{ name: "w", kind: "wait", seq: null }], waiting: ["go"] });
    expect(await record(again, "w", 1, change)).toEqual({
      kind: "done",
      seq: 1,
      output: { n: 1 },
      error: null,
    });
    const steps = await post<{ steps: unknown[] }>("journal", { runId, after: "" });
    expect(steps.body.steps).toMatchObject([{ name: "w", seq: 1, output: { n: 1 } }]);
    expect((await post("inbox-seqs", { runIds: [runId] })).body).toEqual({ seqs: { [runId]: 1 } });
  });

  it("a machine that is paused loses its claim after a step, also for a worker that knows no pauses", async () => {
    const claimNext = await serving("halt", "machine");
    const { runId } = await pawl.start("halt", { n: 0 }, { version: 1, queue });
    const held = await claimNext();
    await pawl.runs.pause(runId);
    const keep = { kind: "keep", step: "b", state: '{"n":1}', consumed: [] };
    expect(await commit(held, keep)).toEqual({ kind: "stale", paused: true });
    expect(await commit(held, keep)).toEqual({ kind: "stale", paused: true });
    await pawl.runs.resume(runId);
    expect((await claimNext()).run).toMatchObject({ step: "b", state: '{"n": 1}', attempt: 0 });
  });

  it("a machine keeps its claim, awaits, spawns, and reads its children", async () => {
    const claimNext = await serving("walk", "machine");
    const { runId } = await pawl.start("walk", { n: 0 }, { version: 1, queue });
    const held = await claimNext();
    await pawl.signal(runId, "early", {});
    const keep = { kind: "keep", step: "b", state: '{"n":1}', consumed: [] };
    expect(await commit(held, keep)).toMatchObject({ kind: "committed", inboxSeq: 1, handed: null });
    expect(await commit(held, keep)).toEqual({ kind: "already", inboxSeq: 1 });
    const page = await post<{ signals: unknown[] }>("inbox", { runId, after: 0, upTo: 1 });
    expect(page.body.signals).toMatchObject([{ seq: 1, name: "early", matched: false }]);
    const names = ["early"];
    const wait = { kind: "await", step: "c", state: null, names, match: null, delayMs: null, shown: [] };
    expect(await commit(held, wait, 1)).toMatchObject({ kind: "committed" });
    const woken = await claimNext();
    expect(woken.run).toMatchObject({ step: "c", timedOut: false, inbox: [{ seq: 1, matched: true }] });
    const spawn = { kind: "spawn", step: "d", state: null, consumed: [1], children: [aChild] };
    expect(await commit(woken, spawn)).toMatchObject({ kind: "committed" });
    const [{ id }] = (await sql("select id::text from runs where parent_id = $1", [runId])) as [
      { id: string },
    ];
    await pawl.runs.cancel(id);
    const last = await claimNext();
    expect(last.run).toMatchObject({ step: "d", children: 1, inbox: [] });
    expect((await post("children", { runId, after: -1 })).body).toMatchObject({
      children: [{ position: 0, runId: id, phase: "cancelled", result: null, created: true }],
    });
  });
});
