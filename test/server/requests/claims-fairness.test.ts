/** One token's claims leave connections to the others, however many sets of definitions it waits for. */

import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const { url, sql, connect } = await testDatabase();
const tokens = ["many:worker:many-secret-0123456789", "few:admin:few-secret-0123456789"];
const { call } = await testServer({ database: url, tokens, pool: 8, logger: silent });
const post = (who: string, path: string, body: unknown) =>
  call("POST", path, body, { authorization: `Bearer ${who}-secret-0123456789` });

let claims = 0;
const claim = (who: string, name: string, waitSeconds: number) =>
  post(who, "/v1/workers/claim", {
    workerId: who,
    claimId: String(Date.now() * 1_000 + ++claims),
    queue: who,
    limit: 1,
    definitions: [{ name, version: 1 }],
    waitSeconds,
  });

it("a token that waits for forty definitions has a quarter of the connections at most", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `d${index}`);
  for (const [who, served] of [
    ["many", names],
    ["few", ["work"]],
  ] as const) {
    const definitions = served.map((name) => {
      return { name, version: 1, kind: "job", queue: who, priority: 0, retentionMs: 1_000 };
    });
    const worker = { workerId: who, leaseMs: 60_000, queues: [who], info: {}, definitions };
    expect((await post("few", "/v1/workflows/warm/runs", {})).status).toBe(201);
    expect((await post(who, "/v1/workers/register", worker)).status).toBe(200);
  }
  // Whatever the one token asks of the database is not answered for now.
  const holder = await connect();
  await holder.query("select pg_advisory_lock(4711)");
  await sql("alter function require_owner rename to require_owner_at_once");
  await sql(`create function require_owner(p_owner text, p_worker text, p_id bigint[], p_claim_id bigint[])
    returns boolean language plpgsql as $f$ begin
      if p_owner = 'many' then perform pg_advisory_xact_lock_shared(4711); end if;
      return pawl.require_owner_at_once(p_owner, p_worker, p_id, p_claim_id);
    end $f$`);
  afterAll(async () => {
    await sql("drop function require_owner");
    await sql("alter function require_owner_at_once rename to require_owner");
  });
  const waiting = async (): Promise<number> => {
    const rows = await sql(
      "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'",
    );
    return rows.length;
  };
  const held = names.map((name) => claim("many", name, 1));
  await until("two looks are under way", async () => (await waiting()) >= 2);
  const answer = claim("few", "work", 20);
  const started = await post("few", "/v1/workflows/work/runs", { version: 1, queue: "few" });
  expect(started.status).toBe(201);
  const { runId } = started.body as { runId: string };
  expect((await answer).body).toMatchObject({ runs: [{ runId }] });
  expect(await waiting()).toBe(2);
  await holder.query("select pg_advisory_unlock(4711)");
  for (const one of held) expect((await one).status).toBe(200);
});
