/** Ways around the prefixes of a worker's token: queues left out, limits, and runs that hold the key of a child. */

import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";

const { url, sql } = await testDatabase();
const secrets = {
  queues: "queues-secret-0123456789",
  both: "both-secret-0123456789",
  all: "admin-secret-0123456789",
};
type Who = keyof typeof secrets;
const server = await testServer({
  database: url,
  tokens: [
    `queues:worker:queues=team-:${secrets.queues}`,
    `both:worker:names=team-:queues=team-:${secrets.both}`,
    `all:admin:${secrets.all}`,
  ],
  logger: silent,
});
const pawl = connect(url);
afterAll(() => pawl.close());

async function post(who: Who, path: string, body: unknown): Promise<{ status: number; body: never }> {
  const headers = { authorization: `Bearer ${secrets[who]}` };
  return (await server.call("POST", `/v1/workers/${path}`, body, headers)) as never;
}

let ids = 0;
const newClaim = (): string => String(Date.now() * 1_000 + ++ids);

/** A run of team-work that a new worker of this token holds. */
async function heldBy(who: Who, workerId = `w${++ids}`): Promise<{ runId: string; claimId: string }> {
  const queue = `team-q${++ids}`;
  const definitions = [
    { name: "team-work", version: 1, kind: "machine", queue, priority: 0, retentionMs: 60_000 },
  ];
  const info = {};
  const made = await post(who, "register", { workerId, leaseMs: 60_000, queues: [queue], info, definitions });
  expect(made.status).toBe(200);
  const { runId } = await pawl.start("team-work", 1, { version: 1, queue });
  const claimId = newClaim();
  const served = [{ name: "team-work", version: 1 }];
  const found = await post(who, "claim", { workerId, claimId, queue, limit: 1, definitions: served });
  expect(found.body).toMatchObject({ runs: [{ runId }] });
  return { runId, claimId };
}

const childOf = (members: object) => ({
  name: "team-child",
  version: null,
  kind: null,
  queue: "team-q",
  priority: null,
  input: "1",
  step: null,
  delayMs: null,
  at: null,
  retentionMs: null,
  idempotencyKey: null,
  uniqueKeyBase64: null,
  uniqueScope: null,
  partitionKey: null,
  rateLimit: null,
  weight: null,
  ...members,
});

const commitOf = (held: { runId: string; claimId: string }, transition: object) => ({
  commits: [{ ...held, turn: 0, inboxSeq: 0, parentId: null, partitionKey: null, next: null, transition }],
  patient: true,
});

const spawnOf = (child: object) => ({
  kind: "spawn",
  step: "gather",
  state: "1",
  children: [child],
  consumed: [],
});

it.each(["queues", "both"] as const)(
  "a child without a queue would run in that of its definition: %s",
  async (who) => {
    await pawl.start("team-elsewhere", 1, { version: 1, queue: "billing" });
    const held = await heldBy(who);
    const child = childOf({ name: "team-elsewhere", queue: null });
    const { body } = await post(who, "commit", commitOf(held, spawnOf(child)));
    expect(body).toMatchObject({ verdicts: [{ kind: "failed", code: "Forbidden" }] });
    expect(await pawl.runs.count({ name: "team-elsewhere" })).toBe(1);
    await sql("delete from runs where name = 'team-elsewhere'");
  },
);

it("a token with prefixes of queues alone sets no limit, which has a name and no queue", async () => {
  const limit = { name: "everybodys", allowed: 1, periodMs: 1_000, burst: 1 };
  expect((await post("queues", "limits", limit)).status).toBe(403);
  expect(await pawl.limits.list()).toEqual([]);
});

it("of a run of others that holds the key of a child, only id and phase are told", async () => {
  const key = Buffer.from("order-1");
  const started = await pawl.start("billing-charge", 1, {
    uniqueKey: key,
    uniqueScope: ["runnable", "executing", "done"],
    queue: "billing",
  });
  await sql(`update runs set status = 'done', result = '"secret"', completed_at = now() where id = $1`, [
    started.runId,
  ]);
  const workerId = "gathers";
  const held = await heldBy("both", workerId);
  const child = childOf({
    uniqueKeyBase64: key.toString("base64"),
    uniqueScope: ["runnable", "executing", "done"],
  });
  const { body } = await post("both", "commit", commitOf(held, spawnOf(child)));
  expect(body).toMatchObject({ verdicts: [{ kind: "committed" }] });
  const { queue } = await pawl.runs.get(held.runId);
  const definitions = [{ name: "team-work", version: 1 }];
  const again = await post("both", "claim", { workerId, claimId: newClaim(), queue, limit: 1, definitions });
  expect(again.body).toMatchObject({ runs: [{ runId: held.runId }] });
  const shown = await post("both", "children", { runId: held.runId, after: -1 });
  expect(shown.body).toMatchObject({
    children: [{ runId: started.runId, phase: "done", created: false, name: "", result: null, error: null }],
  });
});

it("numbers that grow when they are stored are counted in what a workflow waits for, too", async () => {
  const match = `[${Array.from({ length: 100_000 }, () => "1e308").join()}]`;
  const transition = {
    kind: "suspend",
    names: ["paid"],
    matches: { paid: match },
    after: 0,
    dueAt: null,
    steps: ["paid"],
  };
  const answer = await post("both", "commit", commitOf({ runId: "64", claimId: "1" }, transition));
  expect(answer).toMatchObject({ status: 413, body: { code: "PayloadTooLarge" } });
});
