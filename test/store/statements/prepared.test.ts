import { describe, expect, inject, it } from "vitest";
import { PostgresCalls } from "../../../packages/pawl/dist/store/postgres/postgres-calls.js";
import { testDatabase } from "../../support/database.js";

const database = await testDatabase();
const { sql } = database;
await sql(`create function prepared() returns setof text language sql as
  $$ select name from pg_prepared_statements where name <> '' order by name $$`);
await sql(
  "create function forget() returns int language plpgsql as $$ begin execute 'deallocate all'; return 1; end $$",
);
await sql("create function answer() returns int language sql as $$ select 42 $$");

class Calls extends PostgresCalls {
  async prepared(): Promise<string[]> {
    return (await this.call<{ prepared: string }>("prepared", [])).map((row) => row.prepared);
  }
  async forget(): Promise<void> {
    await this.call("forget", []);
  }
  async answer(): Promise<number> {
    return (await this.call<{ answer: number }>("answer", []))[0]!.answer;
  }
}

const withCalls = async (act: (calls: Calls) => Promise<void>): Promise<void> => {
  const calls = new Calls({ url: database.url, schema: "pawl" }, { connections: 1 });
  try {
    await act(calls);
  } finally {
    await calls.close();
  }
};

describe("the statement of a call", () => {
  it("is prepared once on a connection of one's own, and never through a pooler", async () => {
    await withCalls(async (calls) => {
      await calls.prepared();
      await calls.answer();
      await calls.answer();
      const expected = inject("pooledUrl") === null ? ['"pawl".answer(0)', '"pawl".prepared(0)'] : [];
      expect(await calls.prepared()).toEqual(expected);
    });
  });

  it("is sent whole from then on when a connection has lost what was prepared on it", async () => {
    await withCalls(async (calls) => {
      await calls.answer();
      expect(await calls.answer()).toBe(42);
      await calls.forget();
      expect(await calls.answer()).toBe(42);
      expect(await calls.prepared()).toEqual([]);
    });
  });

  it("follows a function that was replaced by one with other columns", async () => {
    await withCalls(async (calls) => {
      await calls.answer();
      expect(await calls.answer()).toBe(42);
      await sql("drop function answer()");
      await sql(
        "create function answer(out answer text, out question text) language sql as $$ select '43', 'six by nine' $$",
      );
      expect(await calls.answer()).toBe("43");
    });
  });
});
