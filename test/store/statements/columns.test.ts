import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";

const { sql } = await testDatabase();

it("names and keys compare by their bytes, whatever the collation of the database: an upgrade of its locale breaks no index", async () => {
  const linguistic = await sql(
    `select c.relname as index, a.attname as column
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_attribute a on a.attrelid = i.indexrelid
     where c.relnamespace = current_schema()::regnamespace and a.attcollation <> 0
       and a.attcollation <> (select oid from pg_collation where collname = 'C' and collnamespace = 'pg_catalog'::regnamespace)`,
  );
  expect(linguistic).toEqual([]);
});

it("large values are compressed by lz4 where the server has it", async () => {
  const [server] = await sql<{ lz4: boolean }>(
    "select 'lz4' = any (enumvals) as lz4 from pg_settings where name = 'default_toast_compression'",
  );
  const others = await sql(
    `select attrelid::regclass::text, attname from pg_attribute
     where attrelid in ('runs'::regclass, 'signals'::regclass, 'steps'::regclass) and atttypid = 'jsonb'::regtype and attcompression <> $1`,
    [server!.lz4 ? "l" : ""],
  );
  expect(others).toEqual([]);
});
