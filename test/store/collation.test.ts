import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";

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
