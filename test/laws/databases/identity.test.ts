import { databaseState, fork, hold, job, migrate } from "pawl";
import { describe, expect, it, onTestFinished } from "vitest";
import { copyName, copyOf, directly, onServer, sideOf } from "../../support/copies.js";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";

const { url } = await testDatabase();
const mail = job({ name: "mail", run: () => "sent" });

/** What a worker that begins to serve this database warns of. */
async function warningsAt(at: string): Promise<string[]> {
  const texts: string[] = [];
  const logger = { ...silent, warn: (_: unknown, text: string) => void texts.push(text) };
  const { pawl, serve } = sideOf(at);
  const worker = await serve([mail], { logger: logger as never });
  expect(await pawl.result((await pawl.start(mail)).runId, { timeout: "100s" })).toBe("sent");
  await worker.stop();
  return texts;
}

const copied = [expect.stringMatching(/^pawl: this database is a copy .* `pawl fork adopt`/)];

describe("a worker", () => {
  it("warns once when its database is a copy, until that is adopted; never in the original", async () => {
    expect(await warningsAt(url)).toEqual([]);
    const before = await databaseState({ url });
    expect(before).toEqual({ identity: expect.any(String), isHeld: false, isCopy: false });
    const made = await copyOf(url, { name: copyName() });
    expect(await databaseState({ url: made.url })).toEqual({ ...before, isCopy: true });
    expect(await warningsAt(made.url)).toEqual(copied);
    expect(await warningsAt(made.url)).toEqual(copied);
    expect(await warningsAt(url)).toEqual([]);
    expect(await fork.adopt({ url: made.url })).toEqual({ wasHeld: false, wasCopy: true });
    expect(await warningsAt(made.url)).toEqual([]);
    const after = await databaseState({ url: made.url });
    expect(after).toMatchObject({ isCopy: false });
    expect(after.identity).not.toBe(before.identity);
    expect(await databaseState({ url })).toEqual(before);
  });

  it("warns until the database is adopted: migrate and a release do not stop the warning", async () => {
    const made = await copyOf(url, { name: copyName(), held: true });
    expect(await migrate({ url: made.url })).toMatchObject({ from: 2, to: 2 });
    expect(await databaseState({ url: made.url })).toMatchObject({ isHeld: true, isCopy: true });
    expect(await hold.release({ url: made.url })).toEqual({ changed: true });
    expect(await warningsAt(made.url)).toEqual(copied);
  });

  it("does not warn of a database that was renamed", async () => {
    const made = await copyOf(url, { name: copyName() });
    await fork.adopt({ url: directly(made.url) }); // who is connected to it keeps its name
    const name = copyName();
    await onServer(`alter database "${made.name}" rename to "${name}"`);
    const renamed = new URL(made.url);
    renamed.pathname = `/${name}`;
    expect(await warningsAt(renamed.href)).toEqual([]);
  });

  it("does not warn of what it may not know: a server that keeps its identity to itself", async () => {
    const { sql } = sideOf(url);
    const role = "pawl_unprivileged";
    await onServer(`create role ${role} login`);
    onTestFinished(async () => {
      await sql(`drop owned by ${role}`);
      await onServer(`drop role ${role}`);
    });
    await sql("grant usage on schema pawl to pawl_unprivileged");
    await sql("grant select on pawl.settings, pawl.migrations to pawl_unprivileged");
    await sql("revoke execute on function pg_control_system() from public");
    onTestFinished(() => sql("grant execute on function pg_control_system() to public").then(() => {}));
    const at = new URL(directly(url));
    at.username = role;
    expect(await databaseState({ url: at.href })).toMatchObject({ isCopy: false });
    await sql("update settings set home = jsonb_set(home, '{system}', '\"1\"')");
    expect(await databaseState({ url: at.href })).toMatchObject({ isCopy: false });
    expect(await databaseState({ url })).toMatchObject({ isCopy: true });
    await fork.adopt({ url });
    expect(await databaseState({ url })).toMatchObject({ isCopy: false });
  });

  it("warns of a restored dump, which has the contents and nothing else", async () => {
    const name = copyName();
    await onServer(`create database "${name}"`);
    const restored = new URL(url);
    restored.pathname = `/${name}`;
    await migrate({ url: restored.href });
    const [home] = await sideOf(url).sql<{ home: object }>("select home from settings");
    const { sql } = sideOf(restored.href);
    await sql("update settings set home = $1", [home!.home]);
    expect(await warningsAt(restored.href)).toEqual(copied);
  });
});
