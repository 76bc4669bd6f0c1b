import { expect, it } from "vitest";
import type { MigrationResult } from "pawl";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url, sql } = await testDatabase({ empty: true });
const schemas = async (): Promise<string[]> =>
  (
    await sql<{ name: string }>(
      "select nspname as name from pg_namespace where nspname in ('pawl', 'other') order by 1",
    )
  ).map(({ name }) => name);

it("a dry run tells what would be done and writes nothing; then it is done, and the second time there is nothing to do", async () => {
  const dry = await pawl(["migrate", "--dry-run"], { url });
  expect(dry.stdout).toMatch(
    /^would apply version 1 to schema "pawl" \(\d+ files of tables\)\nwould apply version 2 to schema "pawl" \(\d+ files of tables\)\n$/,
  );
  expect(await schemas()).toEqual([]);
  expect(await pawl(["migrate"], { url })).toEqual({
    code: 0,
    stdout: 'schema "pawl": version 0 → 2\n',
    stderr: "",
  });
  expect(await schemas()).toEqual(["pawl"]);
  expect((await pawl(["migrate", "--to", "2"], { url })).stdout).toBe(
    'schema "pawl" is at version 2: nothing to do\n',
  );
});

it("another schema is its own, as JSON, by option or environment", async () => {
  const up = await pawlJson<MigrationResult>(["migrate", "--schema", "other"], { url });
  expect(up).toEqual({
    schema: "other",
    from: 0,
    to: 2,
    steps: ['applied version 1 to schema "other"', 'applied version 2 to schema "other"'],
  });
  const again = await pawlJson<MigrationResult>(["migrate"], { url, env: { PAWL_SCHEMA: "other" } });
  expect(again).toMatchObject({ schema: "other", from: 2, steps: [] });
});

it("down deletes only when it is told twice", async () => {
  expect((await pawl(["migrate", "--down", "--schema", "other"], { url })).code).toBe(2);
  const dry = await pawl(["migrate", "--down", "--dry-run", "--schema", "other"], { url });
  expect(dry.stdout).toBe('would remove schema "other" with everything in it\n');
  expect(await schemas()).toEqual(["other", "pawl"]);
  const down = await pawl(["migrate", "--down", "--yes", "--schema", "other"], { url });
  expect(down.stdout).toBe('schema "other": version 2 → 0\n');
  expect(await schemas()).toEqual(["pawl"]);
});

it("a version that does not exist is refused", async () => {
  const { code, stderr } = await pawl(["migrate", "--to", "99"], { url });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^pawl: to must be .*99\n$/) as string]);
});
