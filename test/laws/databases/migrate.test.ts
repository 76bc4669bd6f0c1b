import { connect, job, migrate, serve } from "pawl";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";

const { url, sql } = await testDatabase({ empty: true });

const objects = async (schema: string): Promise<number> => {
  const [row] = await sql<{ n: string }>(
    "select count(*) as n from pg_class where relnamespace = to_regnamespace($1)",
    [schema],
  );
  return Number(row!.n);
};

describe("migrate", () => {
  it("makes the schema, says what it did, and does nothing the second time", async () => {
    const first = await migrate({ url });
    expect(first).toEqual({
      schema: "pawl",
      from: 0,
      to: 2,
      steps: ['applied version 1 to schema "pawl"', 'applied version 2 to schema "pawl"'],
    });
    expect(await migrate({ url })).toEqual({ schema: "pawl", from: 2, to: 2, steps: [] });
  });

  it("run by many at once applies everything once", async () => {
    const results = await Promise.all(Array.from({ length: 8 }, () => migrate({ url, schema: "many" })));
    expect(results.filter(({ steps }) => steps.length > 0)).toHaveLength(1);
    expect(await sql("select version from many.migrations order by version")).toEqual([
      { version: 1 },
      { version: 2 },
    ]);
  });

  it("a newer schema works if no version in between is breaking, and is left as it is", async () => {
    await migrate({ url, schema: "compatible" });
    await sql(
      "insert into compatible.migrations (version, made_schema, functions) values (99, false, 'other')",
    );
    expect(await migrate({ url, schema: "compatible" })).toEqual({
      schema: "compatible",
      from: 99,
      to: 99,
      steps: [],
    });
    const echo = job({ name: "echo", run: (_, input: number) => input });
    const worker = serve([echo], { url, schema: "compatible", logger: silent });
    const pawl = connect(url, { schema: "compatible" });
    expect(await pawl.result((await pawl.start(echo, 1)).runId)).toBe(1);
    await pawl.close();
    await worker.stop();
  });

  it("applies the functions again if they are not those of this release", async () => {
    await migrate({ url, schema: "patched" });
    await sql("update patched.migrations set functions = 'older'");
    await sql(
      "create or replace function patched.is_row_fault(p_sqlstate text) returns boolean language sql as 'select true'",
    );
    expect((await migrate({ url, schema: "patched" })).steps).toEqual([
      'replaced the functions of schema "patched"',
    ]);
    expect(await sql("select patched.is_row_fault('57014')")).toEqual([{ is_row_fault: false }]);
    expect((await migrate({ url, schema: "patched" })).steps).toEqual([]);
  });

  it("leaves the functions of a newer release with the same tables as they are", async () => {
    await migrate({ url, schema: "revised" });
    await sql("update revised.migrations set functions = 'newer', revision = revision + 1");
    expect((await migrate({ url, schema: "revised" })).steps).toEqual([]);
  });

  it("refuses a schema that has a function of somebody else where it needs one, and replaces nothing", async () => {
    await sql("create schema occupied");
    await sql(
      "create function occupied.clock() returns timestamptz language sql as 'select null::timestamptz'",
    );
    await expect(migrate({ url, schema: "occupied" })).rejects.toThrow(
      /has a function clock\(\) that is not Pawl's/,
    );
    expect(await sql("select occupied.clock()")).toEqual([{ clock: null }]);
  });

  it("down takes the list of migrations away whatever its comment says", async () => {
    await migrate({ url, schema: "commented" });
    await sql("comment on table commented.migrations is 'ours'");
    await migrate.down({ url, schema: "commented" });
    expect((await migrate({ url, schema: "commented" })).from).toBe(0);
  });

  it("refuses a newer schema that is breaking, and so do connect and serve", async () => {
    await migrate({ url, schema: "newer" });
    await sql("insert into newer.migrations (version, made_schema, is_breaking) values (99, false, true)");
    await expect(migrate({ url, schema: "newer" })).rejects.toThrow(
      /newer than this release.*99 is marked as breaking/,
    );
    const pawl = connect(url, { schema: "newer" });
    await expect(pawl.start("x", {})).rejects.toThrow(/version 99/);
    const worker = serve([job({ name: "x", run: () => 0 })], { url, schema: "newer", logger: silent });
    await expect(worker.ready).rejects.toThrow(/version 99/);
  });

  it.each(["LATIN1", "SQL_ASCII"])(
    "refuses a database in %s and says what to do, as connect does",
    async (encoding) => {
      const name = `pawl_test_${encoding.toLowerCase()}_${process.pid}`;
      await sql(
        `create database ${name} encoding '${encoding}' locale_provider libc locale 'C' template template0`,
      );
      const other = new URL(url);
      other.pathname = `/${name}`;
      const message = `Pawl needs a database with encoding UTF8, and this one has ${encoding}`;
      await expect(migrate({ url: other.href })).rejects.toThrow(message);
      await expect(migrate({ url: other.href, dryRun: true })).rejects.toThrow(message);
      const pawl = connect(other.href);
      await expect(pawl.start("x", {})).rejects.toThrow(message);
      await pawl.close();
      await sql(`drop database ${name} with (force)`);
    },
  );

  it("leaves nothing behind when it fails", async () => {
    await sql("create schema broken");
    await sql("create table broken.signals (id int)");
    await expect(migrate({ url, schema: "broken" })).rejects.toThrow(/signals/);
    expect(await objects("broken")).toBe(1);
  });

  it("down takes everything away and nothing else", async () => {
    await migrate({ url, schema: "leaving" });
    expect(await migrate.down({ url, schema: "leaving" })).toMatchObject({ from: 2, to: 0 });
    expect(await sql("select to_regnamespace('leaving') as there")).toEqual([{ there: null }]);
    await sql("create schema shared");
    await sql("create function shared.mine() returns int language sql as 'select 1'");
    await migrate({ url, schema: "shared" });
    await migrate.down({ url, schema: "shared" });
    expect(await objects("shared")).toBe(0);
    expect(await sql("select shared.mine(), proconfig from pg_proc where proname = 'mine'")).toEqual([
      { mine: 1, proconfig: null },
    ]);
    await sql("drop function shared.mine()");
    await migrate({ url, schema: "shared" });
    await migrate.down({ url, schema: "shared" });
    expect(await sql("select to_regnamespace('shared') is not null as there")).toEqual([{ there: true }]);
  });

  it("down is refused while a worker serves the schema, and takes nothing away then", async () => {
    const schema = "served";
    await migrate({ url, schema });
    const worker = serve([job({ name: "served", run: () => null })], { url, schema, logger: silent });
    await worker.ready;
    await expect(migrate.down({ url, schema })).rejects.toThrow(
      /schema "served" is in use: stop its workers first \(.+\)/,
    );
    const pawl = connect(url, { schema });
    const { runId } = await pawl.start("served", null);
    expect(await pawl.result(runId)).toBeNull();
    await worker.stop();
    await pawl.close();
    expect((await migrate.down({ url, schema })).to).toBe(0);
  });

  it("deletes runs only when asked by down, and refuses schemas that PostgreSQL has plans for", async () => {
    await expect(migrate({ url, to: 0 })).rejects.toThrow(/from 1 to/);
    await expect(migrate({ url, schema: "pg_mine" })).rejects.toThrow(/schema must not be/);
    await expect(migrate({ url, schema: "$user" })).rejects.toThrow(/schema must not be/);
  });

  it("keeps runs when it is run again", async () => {
    const pawl = connect(url);
    const { runId } = await pawl.start("kept", {});
    await migrate({ url });
    expect((await pawl.runs.get(runId)).name).toBe("kept");
    await pawl.close();
  });

  it("pins the search_path of every function that is called from outside, ending in pg_temp", async () => {
    const rows = await sql<{ proname: string; path: string }>(
      `select proname, (select c from unnest(proconfig) c where c like 'search_path=%') as path
       from pg_proc where pronamespace = 'pawl'::regnamespace and proconfig is not null`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const { path } of rows) expect(path).toMatch(/^search_path=pawl, pg_catalog, pg_temp$/);
  });

  it("an owner with a hostile search_path and temporary tables calls the right functions", async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("create temporary table runs (id int)");
    await client.query("set search_path = pg_temp, public");
    await client.query("select pawl.reap(10)");
    const { rows } = await client.query(
      `select id from pawl.start_runs('{"(x,1,job,default,,,,,,,,,,,,,,,,,)"}', array['1'], false, true, null, null)`,
    );
    expect(rows).toHaveLength(1);
    await client.end();
  });

  it("the views for people show runs by their public words", async () => {
    const pawl = connect(url);
    const { runId } = await pawl.start("viewed", { a: 1 });
    expect(
      await sql(
        "select workflow_name, status, input, retention_days::float8 from workflow_run where run_id = $1",
        [runId],
      ),
    ).toEqual([{ workflow_name: "viewed", status: "running", input: { a: 1 }, retention_days: 30 }]);
    await pawl.close();
  });
});
