/**
 * Two releases at work on one database while it is migrated: the older one is the tarball in `test/fixtures`, the newer one is
 * this checkout, and the newest schema is this one with two more versions. Workers of both are killed and replaced meanwhile.
 */

import { pathToFileURL } from "node:url";
import { connect, type migrate as Migrate } from "pawl";
import { expect, it } from "vitest";
import { migrateSchema } from "../../../packages/pawl/dist/store/postgres/migrate/migrate.js";
import { readSchema, type Schema } from "../../../packages/pawl/dist/store/postgres/migrate/schema-files.js";
import { schemaVersion } from "../../../packages/pawl/dist/store/postgres/version.js";
import { until } from "../../support/until.js";
import { makeArena } from "../arena/arena.js";
import { wait } from "../arena/wait.js";
import { unpackOlderRelease } from "./older-release.js";

const arena = await makeArena();
const { server, fleet, load, sql } = arena;
const older = await unpackOlderRelease();
const { migrate: olderMigrate } = (await import(pathToFileURL(`${older.package}/dist/index.js`).href)) as {
  migrate: typeof Migrate;
};

/** This schema with one more version: columns, and a function that stands beside the one of the workers. */
async function nextSchema(): Promise<Schema> {
  const schema = await readSchema();
  const text = `
    alter table runs add column note text;
    alter table steps add column note text;
    alter table signals add column note text;
    alter table workers add column note text not null default 'new';`;
  const claim = `-- pawl: call
create or replace function claim_next(p_queue text, p_worker text, p_claim_id bigint, p_limit int, p_names text[], p_versions int[], p_more jsonb)
returns table (id text, note text, meta text) language plpgsql as $f$
begin
  return query select c.id, r.note, c.meta from claim(p_queue, p_worker, p_claim_id, p_limit, p_names, p_versions, null, null) c
    left join runs r on r.id = c.id::bigint;
end $f$;`;
  return {
    ...schema,
    versions: [...schema.versions, [{ name: "next_note.sql", text, kind: "table", notes: [] }]],
    functions: [...schema.functions, { name: "claim/claim_next.sql", text: claim, kind: "call", notes: [] }],
    fingerprint: "next",
  };
}

/** The same, and a breaking version after it. */
async function breakingSchema(): Promise<Schema> {
  const schema = await nextSchema();
  const breaking = { name: "breaking.sql", text: "select 1", kind: "table", notes: ["breaking"] } as const;
  return { ...schema, versions: [...schema.versions, [breaking]], fingerprint: "breaking" };
}

const address = { url: server.url, schema: "pawl" };
const next = schemaVersion + 1;

it("two releases work side by side while the schema is migrated: no error reaches a caller, and nothing is lost", async () => {
  await fleet.grow(2, { program: older.program });
  await fleet.grow(4);
  fleet.replaceTheDead();
  const migrating = async (): Promise<void> => {
    for (let times = 0; times < 5; times++) {
      await wait(300);
      // The functions again, as a release does that has others.
      await sql("update migrations set functions = 'other' where version = $1", [schemaVersion]);
      await migrateSchema(address, schemaVersion);
      fleet.killOne();
    }
    const upgraded = await migrateSchema(address, next, undefined, await nextSchema());
    expect(upgraded).toMatchObject({ from: schemaVersion, to: next });
    await wait(500);
    for (let times = 0; times < 20; times++) {
      await wait(50);
      const [worker] = await sql<{ id: string }>("select id from workers order by seen_at desc limit 1");
      const claimId = String(Date.now() * 1_000 + times);
      const claimed = await sql<{ id: string | null }>(
        "select id from claim_next('default', $1, $2, 3, $3, '{1,1,1}', '{}')",
        [worker!.id, claimId, ["pinned", "linear", "nap"]],
      );
      const ids = claimed.map(({ id }) => id).filter((id) => id !== null);
      await sql("select release($1, $2)", [ids, ids.map(() => claimId)]);
      if (times % 5 === 0) fleet.killOne();
    }
    // An older release leaves a newer schema as it is.
    for (const migrate of [olderMigrate, (await import("pawl")).migrate]) {
      expect(await migrate({ url: server.url })).toMatchObject({ from: next, to: next, steps: [] });
    }
    await wait(1_000);
  };
  await load.during(migrating(), 4, 50);
  await arena.quiet();
  console.info(
    `release ${older.version} beside this one: ${load.history.started.length} runs, ${fleet.kills.length} kills; ` +
      `${fleet.logged("trying again")} calls of workers were repeated`,
  );
  expect(load.history.unknown).toBe(0);
  expect(fleet.deaths()).toBe(fleet.kills.length);
  await arena.judge();
}, 240_000);

it("a breaking version stops both releases, which say so, and an upgrade of the package is the way out", async () => {
  await fleet.grow(2, { program: older.program });
  await fleet.grow(4);
  await migrateSchema(address, next + 1, undefined, await breakingSchema());
  const said = `version ${next + 1} is marked as breaking`;
  await until("every worker has said so", () => fleet.logged(said) >= 4, 20_000);
  const pawl = connect(server.url);
  await expect(pawl.start("linear", {})).rejects.toThrow(said);
  await pawl.close();
  await sql("select start('linear')");
  await wait(1_500);
  expect(await sql("select 1 from runs where status = 'runnable' and name = 'linear'")).toHaveLength(1);
}, 60_000);
