import { child, connect, job, machine, serve, workflow } from "pawl";
import { PostgresStore } from "../../../packages/pawl/dist/store/postgres/postgres-store.js";
import pg from "pg";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { countingProxyTo, sentSince } from "../../support/proxies/counting-proxy.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const secrets = {
  ours: "ours-secret-0123456789",
  theirs: "theirs-secret-0123456789",
  confined: "confined-secret-0123456789",
};
type Who = keyof typeof secrets;
const tokens = [
  `ours:worker:${secrets.ours}`,
  `theirs:worker:${secrets.theirs}`,
  `confined:worker:names=team-:queues=team-:${secrets.confined}`,
];
const one = await testServer({ database: database.url, tokens, logger: silent });
const other = await testServer({ database: database.url, tokens, logger: silent });
const open = await testServer({ database: database.url, logger: silent });
const pawl = connect(database.url);
afterAll(() => pawl.close());

let count = 0;
const newClaim = (): string => String(Date.now() * 1_000 + ++count);
let queue = "";
beforeEach(() => {
  queue = `q${++count}`;
});

async function post<T = Record<string, unknown>>(
  who: Who | null,
  path: string,
  body: unknown,
  at = one,
): Promise<{ status: number; body: T }> {
  const headers: Record<string, string> = who === null ? {} : { authorization: `Bearer ${secrets[who]}` };
  const { status, body: answer } = await at.call("POST", `/v1/workers/${path}`, body, headers);
  return { status, body: answer as T };
}

const definitionsIn = (of: string, name = "work") => [
  { name, version: 1, kind: "job", queue: of, priority: 0, retentionMs: 1_000 },
];

async function register(who: Who | null, workerId: string, at = one): Promise<string> {
  const body = {
    workerId,
    leaseMs: 60_000,
    queues: [queue],
    info: {},
    definitions: definitionsIn(queue),
  };
  expect(await post(who, "register", body, at)).toEqual({ status: 200, body: {} });
  return workerId;
}

const claimOf = (workerId: string, claimId: string, waitSeconds = 0) => ({
  workerId,
  claimId,
  queue,
  limit: 1,
  definitions: [{ name: "work", version: 1 }],
  waitSeconds,
});

const commitOf = (runId: string, claimId: string, members: object = {}) => ({
  commits: [
    {
      runId,
      claimId,
      turn: 0,
      inboxSeq: 0,
      parentId: null,
      partitionKey: null,
      next: null,
      transition: { kind: "done", step: null, result: "1" },
      ...members,
    },
  ],
  patient: true,
});

const entryOf = (runId: string, claimId: string, change: object) => ({
  entries: [{ runId, claimId, name: "a", seq: 1, inboxSeq: 0, change }],
  patient: true,
});

const start = async (): Promise<string> => (await pawl.start("work", 1, { version: 1, queue })).runId;

interface Claimed {
  readonly runs: readonly { readonly runId: string }[];
}

/** A run that a worker of this token holds, and the ids of both. */
async function heldBy(who: Who | null): Promise<{ runId: string; claimId: string; workerId: string }> {
  const workerId = await register(who, `holder-${++count}`, who === null ? open : one);
  const runId = await start();
  const claimId = newClaim();
  const { body } = await post<Claimed>(who, "claim", claimOf(workerId, claimId), who === null ? open : one);
  expect(body.runs).toMatchObject([{ runId }]);
  return { runId, claimId, workerId };
}

/** Every call that names somebody else's worker or claim. */
const calls: readonly [string, (held: { runId: string; claimId: string; workerId: string }) => object][] = [
  ["heartbeat", ({ workerId }) => ({ workerId, since: "0" })],
  ["claim", ({ workerId }) => claimOf(workerId, newClaim())],
  ["unregister", ({ workerId }) => ({ workerId })],
  ["commit", ({ runId, claimId }) => commitOf(runId, claimId)],
  [
    "commit",
    ({ runId, claimId, workerId }) =>
      commitOf(runId, claimId, { partitionKey: "k", next: { workerId, claimId: newClaim() } }),
  ],
  ["commit", ({ runId, claimId }) => ({ ...commitOf(runId, claimId), patient: false })],
  [
    "record",
    ({ runId, claimId }) =>
      entryOf(runId, claimId, { op: "run", attempt: 0, output: "1", error: null, tookMs: 1 }),
  ],
  ["release", ({ runId, claimId }) => ({ claims: [{ runId, claimId }] })],
  ["holdings", ({ workerId }) => ({ workerId })],
  ["held", ({ runId, claimId }) => ({ claims: [{ runId, claimId }] })],
  ["overdue", ({ runId }) => ({ runIds: [runId] })],
  ["paused", ({ runId, claimId }) => ({ claims: [{ runId, claimId }] })],
  ["inbox", ({ runId }) => ({ runId, after: 0, upTo: 10 })],
  ["children", ({ runId }) => ({ runId, after: -1 })],
  ["journal", ({ runId }) => ({ runId, after: "" })],
];

/** Calls that are about no worker or claim of others, or that have a test of their own below. */
const apart = ["claim/end", "inbox-seqs", "limits", "register", "schedules"];

describe("a worker belongs to the token that registered it", () => {
  it("every call of the worker protocol is tested here", () => {
    const paths = one.server.routes.map(({ path }) => path).filter((path) => path.startsWith("/v1/workers/"));
    const tested = [...new Set([...calls.map(([path]) => path), ...apart])].map(
      (path) => `/v1/workers/${path}`,
    );
    expect(paths.toSorted()).toEqual(tested.toSorted());
  });

  it.each(calls)("%s of another token is refused, and nothing happens", async (path, bodyOf) => {
    const held = await heldBy("theirs");
    const before = await sql("select * from runs where id = $1", [held.runId]);
    for (const at of [one, other]) {
      const answer = await post("ours", path, bodyOf(held), at);
      expect(answer).toMatchObject({
        status: 403,
        body: { code: "Forbidden", detail: expect.stringMatching(/token/) as string },
      });
      expect(JSON.stringify(answer.body)).not.toContain(held.claimId);
    }
    expect(await sql("select * from runs where id = $1", [held.runId])).toEqual(before);
    expect(await sql("select owner from workers where id = $1", [held.workerId])).toEqual([
      { owner: "theirs" },
    ]);
  });

  it.each(calls)("%s of its own token passes, through any server", async (path, bodyOf) => {
    const held = await heldBy("theirs");
    expect((await post("theirs", path, bodyOf(held), other)).status).toBe(200);
  });

  it("a token cannot act for a worker that was registered without one", async () => {
    const held = await heldBy(null);
    for (const [path, bodyOf] of calls) {
      expect((await post("ours", path, bodyOf(held))).status, path).toBe(403);
    }
  });

  it("without tokens there is no owner, and no refusal", async () => {
    const held = await heldBy(null);
    expect(await sql("select owner from workers where id = $1", [held.workerId])).toEqual([{ owner: null }]);
    expect((await post(null, "commit", commitOf(held.runId, held.claimId), open)).body).toMatchObject({
      verdicts: [{ kind: "committed" }],
    });
  });

  it("a commit that names another token's worker as the next holder is refused", async () => {
    const theirs = await register("theirs", `their-${queue}`);
    const { runId, claimId } = await heldBy("ours");
    const next = { workerId: theirs, claimId: newClaim() };
    const answer = await post("ours", "commit", commitOf(runId, claimId, { partitionKey: "k", next }));
    expect(answer.status).toBe(403);
    expect((await pawl.runs.get(runId)).phase).toBe("executing");
  });

  it("the id of a worker cannot be registered again, by whichever token", async () => {
    const { workerId } = await heldBy("theirs");
    const registration = { leaseMs: 60_000, queues: [queue], info: {}, definitions: definitionsIn(queue) };
    for (const who of ["ours", "theirs"] as const) {
      const answer = await post(who, "register", { workerId, ...registration });
      expect(answer).toMatchObject({ status: 422, body: { code: "InvalidOption" } });
    }
    expect(await sql("select owner from workers where id = $1", [workerId])).toEqual([{ owner: "theirs" }]);
  });

  it("an id that nobody has registered is answered as before", async () => {
    expect((await post("ours", "heartbeat", { workerId: "nobody", since: null })).body).toMatchObject({
      alive: false,
    });
    expect((await post("ours", "unregister", { workerId: "nobody" })).body).toEqual({ held: 0 });
    expect((await post("ours", "claim", claimOf("nobody", newClaim()))).body).toMatchObject({ runs: [] });
  });

  it("a commit that is sent again after its claim has ended is answered as before", async () => {
    const { runId, claimId } = await heldBy("ours");
    const body = commitOf(runId, claimId);
    expect((await post("ours", "commit", body)).body).toMatchObject({ verdicts: [{ kind: "committed" }] });
    expect((await post("ours", "commit", body)).body).toMatchObject({ verdicts: [{ kind: "already" }] });
  });

  it("a token with a new secret and the same name goes on with its workers", async () => {
    const { runId, claimId, workerId } = await heldBy("ours");
    const rotated = "ours-secret-after-the-rotation";
    const later = await testServer({
      database: database.url,
      tokens: [`ours:worker:${rotated}`],
      logger: silent,
    });
    const headers = { authorization: `Bearer ${rotated}` };
    const beat = await later.call("POST", "/v1/workers/heartbeat", { workerId, since: null }, headers);
    expect(beat.body).toMatchObject({ alive: true });
    const done = await later.call("POST", "/v1/workers/commit", commitOf(runId, claimId), headers);
    expect(done.body).toMatchObject({ verdicts: [{ kind: "committed" }] });
  });

  it("inboxes of runs that others hold are left out", async () => {
    const theirs = await heldBy("theirs");
    const ours = await heldBy("ours");
    const answer = await post("ours", "inbox-seqs", { runIds: [theirs.runId, ours.runId] });
    expect(answer).toEqual({ status: 200, body: { seqs: { [ours.runId]: 0 } } });
  });

  it("a claim that waits is ended by its own token only", async () => {
    const workerId = await register("theirs", `their-${queue}`);
    const claimId = newClaim();
    const answer = post<Claimed>("theirs", "claim", claimOf(workerId, claimId, 20));
    await until("it waits", async () => {
      return (await post("ours", "claim/end", { workerId, claimId })).status === 403;
    });
    const runId = await start();
    expect((await answer).body.runs).toMatchObject([{ runId }]);
  });

  it("claims for workers of others do not keep those behind them in line from work", async () => {
    const theirs = await register("theirs", `their-${queue}`);
    const ours = await register("ours", `our-${queue}`);
    const refused = Array.from({ length: 60 }, () => post("ours", "claim", claimOf(theirs, newClaim(), 20)));
    const answer = post<Claimed>("ours", "claim", claimOf(ours, newClaim(), 20));
    for (const { status } of await Promise.all(refused)) expect(status).toBe(403);
    const runId = await start();
    expect((await answer).body.runs).toMatchObject([{ runId }]);
  });

  it.each([
    ["prepared", false],
    ["sent whole, as through a pooler", true],
  ])("the check takes no round trip of its own: %s", async (_how, isWhole) => {
    const proxy = await countingProxyTo(database.url);
    // On connections of somebody else nothing is prepared.
    const pool = new pg.Pool({ connectionString: proxy.url, max: 1 });
    const address = { url: proxy.url, schema: "pawl" };
    const store = new PostgresStore(address, { connections: 1, ...(isWhole ? { pool } : {}) });
    const ours = store.ownedBy("ours");
    const sentFor = async (): Promise<number> => {
      queue = `q${++count}`;
      const { runId, claimId, workerId } = await heldBy("ours");
      const sent = sentSince(proxy);
      await ours.beat(workerId, null);
      await ours.held([{ runId, claimId }]);
      await ours.inbox(runId, { after: 0, upTo: 1 });
      expect(await ours.inboxSeqs([runId])).toEqual(new Map([[runId, 0]]));
      expect(await ours.release([{ runId, claimId }])).toEqual([runId]);
      return sent().total;
    };
    await sentFor();
    expect(await sentFor()).toBe(5);
    await store.close();
    if (!isWhole) await pool.end();
  });
});

describe("a token with prefixes", () => {
  const registration = (names: { queue?: string; name?: string; inQueue?: string }) => ({
    workerId: `confined-${++count}`,
    leaseMs: 60_000,
    queues: [names.queue ?? "team-q"],
    info: {},
    definitions: definitionsIn(names.inQueue ?? "team-q", names.name ?? "team-work"),
  });

  it.each([
    ["a queue", { queue: "other" }],
    ["a definition", { name: "work" }],
    ["a definition's queue", { inQueue: "other" }],
  ])("cannot register %s outside of them", async (_what, names) => {
    const body = registration(names);
    expect(await post("confined", "register", body)).toMatchObject({
      status: 403,
      body: { code: "Forbidden", detail: expect.stringContaining("team-") as string },
    });
    expect(await sql("select from workers where id = $1", [body.workerId])).toEqual([]);
  });

  it("cannot claim from other queues, nor other definitions, nor set other limits", async () => {
    const body = registration({});
    const { workerId } = body;
    expect((await post("confined", "register", body)).status).toBe(200);
    const ask = (of: string, name: string) => ({
      ...claimOf(workerId, newClaim()),
      queue: of,
      definitions: [{ name, version: 1 }],
    });
    expect((await post("confined", "claim", ask("team-q", "team-work"))).status).toBe(200);
    expect((await post("confined", "claim", ask("other", "team-work"))).status).toBe(403);
    expect((await post("confined", "claim", ask("team-q", "work"))).status).toBe(403);
    const limit = { allowed: 1, periodMs: 1_000, burst: 1 };
    expect((await post("confined", "limits", { name: "mail", ...limit })).status).toBe(403);
    expect((await post("confined", "limits", { name: "team-mail", ...limit })).status).toBe(200);
  });

  it("cannot start children outside of them: that is an error of the step, and the others go on", async () => {
    const inside = job({ name: "team-inside", queue: "team-q", run: () => "in" });
    const outside = job({ name: "outside", queue: "team-q", run: () => "out" });
    const spawns = machine({
      name: "team-spawns",
      queue: "team-q",
      steps: {
        start: (ctx) => ctx.spawn("end", [child(inside, null), child(outside, null)], ctx.state),
        end: (ctx) => ctx.done("ended"),
      },
      handle: (error, ctx) => ctx.done((error as { code?: string }).code),
    });
    const invokes = workflow({
      name: "team-invokes",
      queue: "team-q",
      run: async (ctx) => {
        const result = await ctx.step.invoke("inside", inside, null);
        const refused: unknown = await ctx.step.invoke("outside", outside, null).catch((e: unknown) => e);
        return [result, String((refused as { code?: string }).code)];
      },
    });
    const worker = serve([inside, spawns, invokes], {
      url: one.url,
      token: secrets.confined,
      logger: silent,
    });
    await worker.ready;
    const spawned = await pawl.start(spawns, {});
    const invoked = await pawl.start(invokes, null);
    expect(await pawl.result(spawned.runId)).toBe("Forbidden");
    expect(await pawl.result(invoked.runId)).toEqual(["in", "Forbidden"]);
    expect(await sql("select from runs where name = 'outside'")).toEqual([]);
    await worker.stop();
  });
});
