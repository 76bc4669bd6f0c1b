/**
 * The races and barriers can fail: with a function that is built wrong in one of the two ways in which wake-ups are known to be
 * lost, both find runs that wait beside their signal. Each is replaced in a database of its own.
 */

import { describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { pairs } from "./layouts.js";
import { meetings } from "./meeting.js";
import { parkAndSignal } from "./park-and-signal.js";
import { raceOn } from "./race.js";

const statusFiltered = await testDatabase();
const decidesWhileLocking = await testDatabase();

/** A signal that wakes by an update which looks for waiting runs only; it counts the signal under the lock, but too late. */
async function breakSignal({ sql }: TestDatabase): Promise<void> {
  // A lone signal is left to it too.
  await sql(`
    create or replace function signal_one(
      p_run_id bigint, p_name text, p_payload text, p_dedup_key text, p_worker text, p_queues text[], p_claim_id bigint,
      p_patient boolean)
    returns table (run_name text, trace text, claimable text, queue text, handed text) language plpgsql as $f$ begin end $f$`);
  await sql(`
    create or replace function signal(
      p_run_id bigint[], p_name text[], p_payload text[], p_dedup_key text[], p_patient boolean)
    returns table ("position" int, verdict text, run_name text, trace text, claimable text) language plpgsql set search_path = pawl, pg_temp as $f$
    begin
      insert into signals (run_id, seq, name, payload, inserted_at)
      select u.run_id, 1 + (select count(*) from signals s where s.run_id = u.run_id), u.name, u.payload::jsonb, clock()
      from unnest(p_run_id, p_name, p_payload) u(run_id, name, payload);
      update runs r set status = 'runnable', eligible_at = least(r.eligible_at, clock())
      from (select u.run_id, u.name from unnest(p_run_id, p_name) u(run_id, name) order by u.run_id) v
      where r.id = v.run_id and r.status = 'awaiting_signal' and r.awaits -> 'names' ? v.name;
      perform 1 from runs r where r.id = any (p_run_id) order by r.id for no key update;
      update runs r set inbox_seq = r.inbox_seq + 1 where r.id = any (p_run_id);
      return query select u.o::int, 'delivered', null::text, null::text, null::text from unnest(p_run_id) with ordinality u(id, o);
    end $f$`);
}

/** A commit without the statement that locks: the update that waits for the run decides by the signals it saw before. */
async function breakPark({ sql }: TestDatabase): Promise<void> {
  const [row] = await sql<{ text: string }>(
    "select pg_get_functiondef('apply_transitions'::regproc) as text",
  );
  const lock = /elsif p_parent_id is not null or [^;]+ then\s+perform 1 from[^;]+for no key update\) l;/;
  expect(row!.text).toMatch(lock);
  await sql(row!.text.replace(lock, "elsif true then null;"));
}

async function lostInRaces(database: TestDatabase, signals: number): Promise<number> {
  const race = await raceOn(database);
  let lost = 0;
  for (let round = 0; round < 10; round++) lost += await parkAndSignal(race, 200, { parks: 50, signals });
  return lost;
}

/** The pairs of one run in which a wake-up is lost. */
async function lostAtBarriers(database: TestDatabase): Promise<string[]> {
  const { meet } = await meetings(database);
  const found: string[] = [];
  for (const one of pairs()) {
    const names = `${one.first.name}, then ${one.second.name}`;
    if (
      !["park, then signal", "signal, then park"].includes(names) ||
      !one.name.includes("one run, executing")
    )
      continue;
    await meet(one).catch((error: Error) => {
      expect(error.message).toContain("lost wake-ups");
      found.push(`${names}, first ${one.end}`);
    });
  }
  return found;
}

describe("a wake-up that looks for waiting runs only", async () => {
  await breakSignal(statusFiltered);

  it("is caught by the barrier: the signal passes a park in flight", async () => {
    expect(await lostAtBarriers(statusFiltered)).toEqual(["park, then signal, first commits"]);
  });

  it("is caught by the race", async () => {
    await statusFiltered.sql("delete from workers");
    const lost = await lostInRaces(statusFiltered, 50);
    console.info(`status-filtered wake: ${lost} of 2000 wake-ups lost`);
    expect(lost).toBeGreaterThan(0);
  });
});

describe("a park that decides in the statement that locks", async () => {
  await breakPark(decidesWhileLocking);

  it("is caught by the barrier: it does not see the signal it waited for", async () => {
    expect(await lostAtBarriers(decidesWhileLocking)).toEqual(["signal, then park, first commits"]);
  });

  it("is caught by the race", async () => {
    await decidesWhileLocking.sql("delete from workers");
    // One signal at a time: a park that does not lock in order would meet a batch of them in a deadlock.
    const lost = await lostInRaces(decidesWhileLocking, 1);
    console.info(`park that decides while locking: ${lost} of 2000 wake-ups lost`);
    expect(lost).toBeGreaterThan(0);
  });
});
