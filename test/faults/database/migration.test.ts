/**
 * Two versions of the schema's functions at once: what a migration does to a database under load, done by hand, since the next version does
 * not exist yet. Every function is replaced by itself, with workers in the middle of calls to the one before; tables get a column, and a new
 * function stands beside the one that the running workers call.
 */

import { readdirSync, readFileSync } from "node:fs";
import { migrate } from "pawl";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { wait } from "../arena/wait.js";

const arena = await makeArena();
const { server, fleet, load, sql } = arena;
const client = new pg.Client({ connectionString: server.url });
await client.connect();
afterAll(() => client.end());

const folder = new URL("../../../packages/pawl/src/store/postgres/migrations/0001/", import.meta.url);
const replacements = readdirSync(folder)
  .toSorted()
  .filter((name) => /^[129]/.test(name))
  .map((name) =>
    readFileSync(new URL(name, folder), "utf8")
      .replaceAll(/^create type [^;]*;/gm, "")
      .replaceAll(/^create (function|view)/gm, "create or replace $1"),
  );

/** In one transaction, as `migrate` does it. */
async function inOne(statements: readonly string[]): Promise<void> {
  await client.query("begin");
  await client.query("set local search_path = pawl, pg_catalog, pg_temp");
  for (const statement of statements) await client.query(statement);
  await client.query("commit");
}

const claimTwo = `
create function claim_2(p_queue text, p_worker text, p_claim_id bigint, p_limit int, p_names text[], p_versions int[], p_more jsonb)
returns table (id bigint, note text, meta text) language plpgsql as $f$
begin
  return query select c.id, r.note, c.meta
    from claim(p_queue, p_worker, p_claim_id, p_limit, p_names, p_versions, null, null) c
    left join runs r on r.id = c.id;
end $f$`;

const replaced = 5;

it("the schema is migrated while everything is at work: no error reaches a caller, and nothing is lost", async () => {
  await fleet.grow(2);
  const migrating = async (): Promise<void> => {
    for (let times = 0; times < replaced; times++) {
      await wait(300);
      await inOne(replacements);
      await migrate({ url: server.url });
    }
    await inOne([
      "alter table runs add column note text",
      "alter table steps add column note text",
      "alter table signals add column note text",
      "alter table workers add column note text not null default 'new'",
      claimTwo,
    ]);
    await wait(500);
    // Those of the next version beside those of this one.
    const versions = ["pinned", "linear", "nap"];
    for (let times = 0; times < 20; times++) {
      await wait(50);
      const [worker] = await sql<{ id: string }>("select id from workers order by seen_at desc limit 1");
      const claimId = String(Date.now() * 1_000 + times);
      const claimed = await sql<{ id: string | null }>(
        "select id from claim_2('default', $1, $2, 3, $3, '{1,1,1}', '{}')",
        [worker!.id, claimId, versions],
      );
      const ids = claimed.map(({ id }) => id).filter((id) => id !== null);
      await sql("select release($1, $2)", [ids, ids.map(() => claimId)]);
    }
    await inOne(replacements);
    await wait(500);
  };
  await load.during(migrating(), 4, 50);
  await arena.quiet();
  console.info(
    `${replaced + 1} replacements of all functions with ${load.history.started.length} runs; ` +
      `${fleet.logged("trying again")} calls of workers were repeated`,
  );
  expect(load.history.unknown).toBe(0);
  expect(fleet.deaths()).toBe(0);
  await expect(migrate.down({ url: server.url })).rejects.toThrow(/in use/);
  await arena.judge();
}, 150_000);
