import { fork, NotSupported } from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";

/** What only holds behind a pooler: skipped elsewhere, run by `npm run test:pgbouncer`. */
const database = await testDatabase();
const isPooled = database.url !== database.directUrl;

it.runIf(isPooled)("no database is copied through a pooler, and the error says what to do", async () => {
  const forking = fork({ url: database.url, name: "copy_through_a_pooler" });
  await expect(forking).rejects.toThrow(NotSupported);
  await expect(forking).rejects.toThrow("give the URL of the server itself");
  const left = "select from pg_database where datname = 'copy_through_a_pooler'";
  expect(await database.sql(left)).toEqual([]);
});
