/**
 * The queries of the benches about the work of the engine, and the clean-up between two
 * measurements. All times are on the database's clock, in seconds since 1970.
 */

import type pg from "pg";

const lookMs = 20;

async function one(observer: pg.Client, text: string, values: readonly unknown[] = []): Promise<number> {
  const { rows } = await observer.query<{ value: number }>(text, [...values]);
  return rows[0]!.value;
}

export function databaseTime(observer: pg.Client): Promise<number> {
  return one(observer, "select extract(epoch from clock_timestamp())::float8 as value");
}

/** When the youngest worker registered. */
export function lastRegistration(observer: pg.Client): Promise<number> {
  return one(observer, "select extract(epoch from max(registered_at))::float8 as value from pawl.workers");
}

/**
 * When the last of the runs of this definition was done, once all are: the last outcomes may still
 * be on their way when their code has run. Rides runs_listing.
 */
export async function lastCompletion(
  observer: pg.Client,
  name: string,
  expected: number,
  deadline: AbortSignal,
): Promise<number> {
  const done = (): Promise<number> =>
    one(
      observer,
      "select count(*)::float8 as value from pawl.runs r where r.name = $1 and r.status = 'done'",
      [name],
    );
  await until(async () => (await done()) >= expected, deadline);
  if ((await done()) > expected)
    throw new Error(`more runs of ${name} are done than the ${expected} started`);
  return one(
    observer,
    "select extract(epoch from max(r.completed_at))::float8 as value from pawl.runs r where r.name = $1",
    [name],
  );
}

/** How many runs of the default queue a claim could come across. Rides runs_claim. */
export function claimableRuns(observer: pg.Client): Promise<number> {
  return one(
    observer,
    `select count(*)::float8 as value from pawl.runs r where r.queue = 'default'
       and case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end`,
  );
}

/** The runs of this definition that wait for a signal. Rides runs_listing. */
export async function parkedRuns(observer: pg.Client, name: string, most: number): Promise<string[]> {
  const { rows } = await observer.query<{ id: string }>(
    `select r.id::text as id from pawl.runs r where r.name = $1 and r.status = 'awaiting_signal' limit $2`,
    [name, most],
  );
  return rows.map(({ id }) => id);
}

/** How many runs of this definition wait. Rides runs_listing. */
export function parkedCount(observer: pg.Client, name: string): Promise<number> {
  return one(
    observer,
    "select count(*)::float8 as value from pawl.runs r where r.name = $1 and r.status = 'awaiting_signal'",
    [name],
  );
}

/** For the next measurement in the same database. Only while no worker is there. */
export async function emptyDatabase(observer: pg.Client): Promise<void> {
  await observer.query("truncate pawl.runs, pawl.signals, pawl.steps, pawl.buckets");
}

/** Looks again and again until it is so. */
export async function until(isSo: () => Promise<boolean>, deadline: AbortSignal): Promise<void> {
  while (!(await isSo())) {
    deadline.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}
