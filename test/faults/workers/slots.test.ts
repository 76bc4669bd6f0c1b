import { connect } from "pawl";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";
import { type Fleet, makeFleet, makeLedger } from "../arena/fleet.js";
import { linear } from "../programs/definitions.js";

const database = await testDatabase();
const { sql } = database;
const ledger = await makeLedger();
const pawl = connect(database.url);
afterAll(() => pawl.close());

const concurrent = 3;
const keys = 20;

let fleet: Fleet;
beforeEach(() => {
  fleet = makeFleet(database.url, ledger.url);
  fleet.replaceTheDead();
});
afterEach(() => fleet.stop());

/** Notes, in the transaction that claims, each moment at which a key has more holders than slots. */
async function watchExcess(): Promise<void> {
  await sql("create table public.excess (concurrency text, held int)");
  await sql(`create function public.note_excess() returns trigger language plpgsql as $$ begin
    insert into public.excess select new.concurrency, count(*) from pawl.runs r
      where r.concurrency = new.concurrency and r.locked_by is not null having count(*) > ${concurrent};
    return null; end $$`);
  await sql(`create trigger note_excess after update on runs for each row
    when (new.locked_by is not null and old.locked_by is null and new.concurrency is not null)
    execute function public.note_excess()`);
}

describe("a concurrency limit", () => {
  it("is never exceeded and leaks no slot while four processes are killed and frozen", async () => {
    await pawl.limits.set("tenant", { concurrent });
    await watchExcess();
    await fleet.grow(4);
    const started = await pawl.startMany(
      linear,
      Array.from({ length: 1_000 }, (_, n) => ({
        input: { path: [] },
        concurrency: { name: "tenant", key: String(n % keys) },
      })),
    );
    let faults = 0;
    const harming = setInterval(() => {
      if (faults < 40 && (faults % 4 === 3 ? fleet.freezeOne(3_000) : fleet.killOne())) faults++;
    }, 400);
    const unfinished = async (): Promise<number> => {
      const [row] = await sql<{ n: string }>("select count(*) as n from runs where completed_at is null");
      return Number(row!.n);
    };
    await until("nearly all have ended", async () => (await unfinished()) < 100, 300_000);
    clearInterval(harming);
    // Some are cancelled wherever they are: executing, admitted, or in line.
    for (const { runId } of started.slice(-20)) await pawl.runs.cancel(runId).catch(() => {});
    await until("all have ended", async () => (await unfinished()) === 0, 120_000);
    await until(
      "no run is held",
      async () => (await sql("select from runs where locked_by is not null")).length === 0,
      60_000,
    );
    await fleet.stop();
    expect(faults).toBeGreaterThan(5);
    expect(await sql("select * from public.excess")).toEqual([]);
    expect(await sql("select id, status, error from runs where status not in ('done', 'cancelled')")).toEqual(
      [],
    );
    expect(await sql("select from slots")).toEqual([]);
  });
});
