import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalPostgres } from "@pawl/local-postgres";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.js";
import { ask, expectInvariants, makeArena } from "../arena/arena.js";
import { makeFleet, makeLedger } from "../arena/fleet.js";
import { afterStop, invariants } from "../arena/invariants.js";

const arena = await makeArena();
const { server, fleet, load, chance } = arena;
const ledger = await makeLedger();
const place = mkdtempSync(join(tmpdir(), "pawl-copy-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

it("a database that is copied in the middle of its work goes on twice: both copies finish on their own", async () => {
  await fleet.grow(2);
  await load.start(160, 16);
  await server.kill();
  const directory = join(place, "data");
  cpSync(server.directory, directory, { recursive: true });
  const other = await startLocalPostgres({ directory, port: "free" });
  const fleetOfOther = makeFleet(other.url, ledger.url, chance);
  afterAll(async () => {
    await fleetOfOther.stop();
    await other.stop();
  });
  const sql = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    until("the copy answers", () => ask<Row>(other.url, text, values), 60_000);

  const open = "select from runs where completed_at is null";
  const left = await sql(open);
  expect(left.length).toBeGreaterThan(0);
  await Promise.all([server.start(), fleetOfOther.grow(2)]);
  await until("the copy has finished", async () => (await sql(open)).length === 0, 60_000);
  await arena.quiet();
  console.info(`copied with ${left.length} open runs`);

  const evidence = { sql, ledger: ledger.sql, history: load.history, seenEnds: new Map<string, string>() };
  await expectInvariants(invariants, evidence, chance.seed);
  await fleetOfOther.drain();
  await expectInvariants(afterStop, evidence, chance.seed);
  await arena.judge();
}, 150_000);
