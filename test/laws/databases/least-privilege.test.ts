/** A role that owns nothing does all that clients, workers and the server do; whoever lacks a right is told which. */

import { connect, job, machine, migrate, serve, signal, type, workflow } from "pawl";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { readSchema, tableRights } from "../../../packages/pawl/dist/store/postgres/migrate/schema-files.js";
import { pawl as command } from "../../command/pawl.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { testServer } from "../../support/server.js";

const { directUrl, sql } = await testDatabase({ empty: true });
const written = await readSchema();
const rightsOf = tableRights(written);
const suffix = new URL(directUrl).pathname.slice(-12);
const database = new URL(directUrl).pathname.slice(1);

/** Roles are the whole server's: they go with their rights here, and before the database. */
const made: string[] = [];
async function makeRole(name: string): Promise<{ name: string; url: string }> {
  const full = `${name} ${suffix}`;
  await sql(`create role "${full.replaceAll('"', '""')}" login password 'secret'`);
  made.push(full);
  const at = new URL(directUrl);
  at.username = encodeURIComponent(full);
  at.password = "secret";
  return { name: full, url: at.href };
}
afterAll(async () => {
  const client = new pg.Client({ connectionString: directUrl });
  await client.connect();
  for (const name of made) {
    const quoted = `"${name.replaceAll('"', '""')}"`;
    await client.query(`drop owned by ${quoted} cascade`);
    await client.query(`drop role ${quoted}`);
  }
  await client.end();
});

const owner = await makeRole("Owner");
// A name that breaks every statement which does not quote it.
const app = await makeRole('app"; drop schema pawl; --');

const twice = job({ name: "twice", run: (_ctx, input: number) => input * 2 });
const steps = workflow({
  name: "steps",
  run: async ({ step }) => {
    await step.run("first", () => 1);
    await step.waitForEvent("never", { timeout: "1ms" });
    return step.transaction(
      "second",
      async (tx) => (await tx.query("select 2 as n")).rows[0]!["n"] as number,
    );
  },
});
const waits = machine({
  name: "waits",
  initial: "ask",
  state: type<{ asked: number }>(),
  signals: { answer: signal<object>() },
  steps: {
    ask: (ctx) => ctx.awaitSignal("answer", "answered", ctx.state),
    answered: (ctx) => ctx.done(ctx.awaited.length),
  },
});

describe("migrate by a role that has no right on the database", () => {
  it("names the right and the statement, and writes nothing", async () => {
    await sql(`revoke create on database "${database}" from public`);
    await expect(migrate({ url: owner.url })).rejects.toThrow(
      `the role "${owner.name}" lacks the right create on database "${database}", and there is no schema "pawl" yet. ` +
        `Let the owner or an administrator run: create schema "pawl" authorization "${owner.name}"`,
    );
    expect(await sql("select to_regnamespace('pawl') as there")).toEqual([{ there: null }]);
  });

  it("works once it owns the schema, as that statement makes it", async () => {
    await sql(`create schema "pawl" authorization "${owner.name}"`);
    expect(await migrate({ url: owner.url })).toMatchObject({ from: 0, to: 2 });
    expect(await migrate({ url: owner.url })).toMatchObject({ from: 2, to: 2, steps: [] });
  });

  it("down and up again keep the schema, which somebody else made", async () => {
    expect(await migrate.down({ url: owner.url })).toMatchObject({ from: 2, to: 0 });
    expect(await sql("select to_regnamespace('pawl') is not null as there")).toEqual([{ there: true }]);
    await migrate({ url: owner.url });
  });

  it("names create or usage on the schema, whichever is missing", async () => {
    const other = await makeRole("other");
    await sql("create schema elsewhere");
    const wanted = `run: grant usage, create on schema "elsewhere" to "${other.name}"`;
    const tried = (): Promise<unknown> => migrate({ url: other.url, schema: "elsewhere" });
    await expect(tried()).rejects.toThrow(`lacks the right usage on schema "elsewhere". Let the owner`);
    await sql(`grant usage on schema elsewhere to "${other.name}"`);
    await expect(tried()).rejects.toThrow(`lacks the right create on schema "elsewhere"`);
    await expect(tried()).rejects.toThrow(wanted);
    await sql(`grant usage, create on schema elsewhere to "${other.name}"`);
    await expect(tried()).resolves.toMatchObject({ to: 2 });
  });

  it("is told whose tables they are when it may not take them away or grant them", async () => {
    const stranger = await makeRole("stranger");
    await sql(`grant usage, create on schema pawl to "${stranger.name}"`);
    await sql(`grant select on pawl.migrations to "${stranger.name}"`);
    const refusal = `does not own the tables of schema "pawl"; the role "${owner.name}" does`;
    await expect(migrate.down({ url: stranger.url })).rejects.toThrow(refusal);
    await expect(migrate({ url: stranger.url, grant: stranger.name })).rejects.toThrow(
      `run: grant "${owner.name}" to "${stranger.name}"`,
    );
    expect(await migrate({ url: stranger.url })).toMatchObject({ from: 2, steps: [] });
  });
});

describe("a role that owns nothing", () => {
  it("is told by connect and serve which command lets it in", async () => {
    const pawl = connect(app.url);
    const refused = await pawl.start(twice, 1).catch((error: unknown) => error as Error);
    await pawl.close();
    expect(refused).toMatchObject({ code: "Unavailable" });
    expect((refused as Error).message).toContain("permission denied for schema pawl");
    expect((refused as Error).message).toContain('migrate({ url, grant: "<role>" })');
    expect((refused as Error).message).not.toContain(app.name);
    const worker = serve([twice], { url: app.url, logger: silent });
    await expect(worker.ready).rejects.toThrow(/pawl migrate --grant/);
  });

  it("must exist before anything is written: its name is compared exactly", async () => {
    const nobody = `nobody here ${suffix}`;
    const fresh = { url: directUrl, schema: "not_made" };
    await expect(migrate({ ...fresh, grant: nobody })).rejects.toThrow(
      `grant must name a role of this database server, and "${nobody}" is none`,
    );
    const near = app.name.toUpperCase();
    await expect(migrate({ ...fresh, grant: near })).rejects.toThrow(/there is one called .*app/);
    await expect(migrate({ ...fresh, grant: "public" })).rejects.toThrow(/is none/);
    await expect(migrate({ ...fresh, grant: "" })).rejects.toThrow(/grant must be the name of a role/);
    await expect(migrate.down({ ...fresh, grant: app.name } as object)).rejects.toThrow(/unknown option/);
    expect(await sql("select to_regnamespace('not_made') as there")).toEqual([{ there: null }]);
  });

  it("is granted by the command, whatever its name is, and a second time without harm", async () => {
    const dry = await command(["migrate", "--grant", app.name, "--dry-run"], { url: owner.url });
    expect(dry.stdout).toBe(`would grant the role "${app.name}" the use of schema "pawl"\n`);
    for (let time = 0; time < 2; time++) {
      const { code, stdout } = await command(["migrate", "--grant", app.name], { url: owner.url });
      expect([code, stdout]).toEqual([0, `granted the role "${app.name}" the use of schema "pawl"\n`]);
    }
    const both = await command(["migrate", "--down", "--yes", "--grant", app.name], { url: owner.url });
    expect(both.code).toBe(2);
  });

  it("has these rights and no others, and owns nothing", async () => {
    const rights = await sql<{ name: string; rights: string }>(
      `select c.relname as name, string_agg(lower(a.privilege_type), ', ' order by a.privilege_type) as rights
       from pg_class c, lateral aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
       where c.relnamespace = 'pawl'::regnamespace and r.rolname = $1 group by 1`,
      [app.name],
    );
    const sorted = (text: string): string => text.split(", ").toSorted().join(", ");
    expect(Object.fromEntries(rights.map(({ name, rights: held }) => [name, held]))).toEqual({
      ...Object.fromEntries([...rightsOf].map(([name, held]) => [name, sorted(held)])),
      run_ids: "usage",
    });
    const [created] = await sql<{ schema: boolean; database: boolean }>(
      `select has_schema_privilege($1, 'pawl', 'create') as schema,
         has_database_privilege($1, current_database(), 'create') as database`,
      [app.name],
    );
    expect(created).toEqual({ schema: false, database: false });
  });

  it("runs jobs, workflows and machines, queues and topics, limits and why, straight and through a server", async () => {
    const { url } = await testServer({ database: app.url, logger: silent });
    for (const at of [app.url, url]) {
      const pawl = connect(at);
      // A user's transaction is one of the database, which a worker through a server does not reach.
      const isStraight = at === app.url;
      const served = isStraight ? [twice, waits, steps] : [twice, waits];
      const worker = serve(served, { url: at, logger: silent });
      await worker.ready;
      expect(await pawl.result((await pawl.start(twice, 21)).runId)).toBe(42);
      if (isStraight) {
        const { runId } = await pawl.start("steps", null);
        expect(await pawl.result(runId)).toBe(2);
      }
      const { runId } = await pawl.start(waits, { asked: 0 });
      await pawl.signal(runId, "answer", {});
      expect(await pawl.result(runId)).toBe(1);
      await pawl.limits.set("slow", { allowed: 1, period: "1h" });
      expect((await pawl.why((await pawl.start("nobody-serves-this", {})).runId)).reason).toBe("unserved");
      await pawl.queues.send("letters", { n: 1 });
      const [message] = await pawl.queues.receive("letters");
      expect(message).toMatchObject({ body: { n: 1 } });
      await pawl.topics.publish("news.today", { n: 2 });
      await worker.stop();
      await pawl.close();
    }
  });

  it("boots a server, and its doctor tells what it cannot see", async () => {
    const { code, stdout } = await command(["doctor", "--patience", "10m"], { url: app.url });
    expect(stdout).toMatch(/^note {3}transactions +this role cannot see the transactions of other roles/m);
    expect(stdout).toMatch(/fix: grant pg_read_all_stats to the role of the URL/);
    expect(stdout).toMatch(/^ok .*"pawl" is at version 2/m);
    expect([0, 1]).toContain(code);
  });

  it("cannot hold more than its rights: it neither changes the schema nor takes it away", async () => {
    await expect(migrate.down({ url: app.url })).rejects.toThrow(/does not own the tables/);
    expect(await migrate({ url: app.url })).toMatchObject({ from: 2, to: 2, steps: [] });
  });

  it("gets what a later migration adds, unless its rights were revoked", async () => {
    const schema = "renewed";
    const revoked = await makeRole("revoked");
    await migrate({ url: directUrl, schema, grant: app.name });
    await migrate({ url: directUrl, schema, grant: revoked.name });
    await sql(`revoke all on all tables in schema ${schema} from "${revoked.name}"`);
    // As a table or function of a later version would be: there, and nothing granted on it.
    const quoted = `"${app.name.replaceAll('"', '""')}"`;
    await sql(`revoke all on renewed.steps from ${quoted}`);
    await sql(`revoke execute on function renewed.clock() from public, ${quoted}`);
    const other = await makeRole("another");
    await migrate({ url: directUrl, schema, grant: other.name });
    const held = async (role: string): Promise<unknown> =>
      (
        await sql(
          `select has_table_privilege($1, 'renewed.steps', 'insert') as steps,
             has_function_privilege($1, 'renewed.clock()', 'execute') as now`,
          [role],
        )
      )[0];
    expect(await held(app.name)).toEqual({ steps: true, now: true });
    expect(await held(other.name)).toEqual({ steps: true, now: true });
    expect(await held(revoked.name)).toMatchObject({ steps: false });
  });
});

it("the rights cover every table and every statement of the migrations", async () => {
  const tables = await sql<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'pawl'::regnamespace and relkind in ('r', 'p', 'v', 'm')",
  );
  expect(tables.map(({ name }) => name).toSorted()).toEqual([...rightsOf.keys()].toSorted());
  const missing: string[] = [];
  for (const file of written.functions) {
    const text = file.text.replaceAll(/--.*$/gm, "");
    for (const [, verb = "", table = ""] of text.matchAll(
      /\b(insert into|update|delete from)\s+(?:only\s+)?(\w+)/gi,
    )) {
      const right = verb.split(" ", 1)[0]!.toLowerCase();
      const rights = rightsOf.get(table.toLowerCase());
      if (rights !== undefined && !rights.includes(right)) missing.push(`${file.name}: ${right} on ${table}`);
    }
  }
  expect(missing).toEqual([]);
});
