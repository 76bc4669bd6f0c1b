/**
 * The clock of a test's database. It stands still until the test moves it, and never goes back. Due
 * times, backoff, rate limits and retention follow it; leases do not. Used by `test-pawl.ts`.
 */

import { InvalidOption } from "../values/errors.js";
import type { PrivateDatabase } from "./private-database.js";

/** Replaces the clock of a migrated database by one that the test can move. */
export const clockSql = `
  create schema pawl_testing;
  create table pawl_testing.clock (at timestamptz not null);
  insert into pawl_testing.clock values (date_trunc('milliseconds', clock_timestamp()));
  create or replace function pawl.clock() returns timestamptz language sql volatile parallel safe
    as 'select c.at from pawl_testing.clock c';
`;

/**
 * Moves the clock to the next due time, but at most to $1; if nothing is due, to $1 unless that is
 * infinity. Due times are those of runs, of steps whose body is alive, of deadlines, of schedules, and of
 * retention. Returns
 * the time, and whether something is due at it.
 */
const moveSql = `
  update pawl_testing.clock c set at = greatest(c.at, coalesce(n.at, case when $1::timestamptz < 'infinity' then $1::timestamptz end)) from (
    select min(d.at) as at from pawl_testing.clock b cross join lateral (
      select min(r.eligible_at) as at from pawl.runs r
        where r.status in ('runnable', 'awaiting_signal') and (r.hold & 4) = 0 and r.eligible_at > b.at
      union all
      select min(s.due_at) from pawl.steps s join pawl.runs r on r.id = s.run_id
        where s.completed_at is null and s.due_at > b.at and r.status = 'executing'
      union all
      select min(x.deadline_at) from pawl.extras x where x.deadline_at > b.at and not x.ended
      union all
      select min(s.due_at) from pawl.schedules s where s.due_at > b.at
      union all
      select min(r.expires_at) from pawl.runs r where r.expires_at > b.at and r.status in ('done', 'failed', 'cancelled')) d
    where d.at <= $1::timestamptz and d.at < 'infinity') n
  returning jsonb_build_object('at', c.at, 'ms', extract(epoch from c.at) * 1000, 'isDue', n.at is not null,
    'isThere', c.at >= $1::timestamptz) as answer`;

interface Time {
  readonly ms: number;
}

export interface Move extends Time {
  /** Something is due at that time. */
  readonly isDue: boolean;
  /** The clock has reached its target. */
  readonly isThere: boolean;
}

export class TestClock {
  readonly #database: PrivateDatabase;
  #nowMs: number;

  private constructor(database: PrivateDatabase, nowMs: number) {
    this.#database = database;
    this.#nowMs = nowMs;
  }

  /** Sets the clock of a new database to this time, or to the current time. */
  static async set(database: PrivateDatabase, at: Date | null): Promise<TestClock> {
    const { ms } = await database.ask<Time>(
      `update pawl_testing.clock c set at = coalesce($1::timestamptz, date_trunc('milliseconds', clock_timestamp()))
       returning jsonb_build_object('ms', extract(epoch from c.at) * 1000) as answer`,
      [at === null ? null : at.toISOString()],
    );
    return new TestClock(database, ms);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** The exact time after this many milliseconds. */
  later(ms: number): Promise<string> {
    return this.#database.ask<string>(
      "select to_jsonb(c.at + $1 * interval '1 millisecond') as answer from pawl_testing.clock c",
      [ms],
    );
  }

  /** The exact time of a date, which must not be in the past of this clock. */
  until(date: Date): string {
    if (date.getTime() >= Math.floor(this.#nowMs)) return date.toISOString();
    throw new InvalidOption(
      `the clock cannot go back to ${date.toISOString()}: it is ${new Date(this.#nowMs).toISOString()} in this test. Start the test earlier with testPawl({ now })`,
    );
  }

  /** Moves to the next due time, but not beyond `to`. Without `to`, stays if nothing is due. */
  async move(to = "infinity"): Promise<Move> {
    const moved = await this.#database.ask<Move>(moveSql, [to]);
    this.#nowMs = moved.ms;
    return moved;
  }
}
