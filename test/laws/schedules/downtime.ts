/** What the laws of schedules share: SQL behind a test, a downtime, the ticks of runs. */

import type { TestPawl } from "pawl/testing";
import pg from "pg";

/** Runs SQL in the database of a test. */
export async function behind(t: TestPawl, text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: t.url });
  await client.connect();
  await client.query(text, values);
  await client.end();
}

/** The clock moves while nobody fires schedules, as if all workers and servers were down. */
export async function downtime(t: TestPawl, interval: string): Promise<void> {
  await behind(t, "update pawl_testing.clock set at = at + $1::interval", [interval]);
  await t.drain();
}

/** The ticks of the runs of a definition, oldest first. */
export async function ticksOf(t: TestPawl, name: string): Promise<string[]> {
  const ticks: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await t.pawl.runs.list({ name, limit: 100, cursor });
    ticks.push(...page.runs.map(({ schedule }) => schedule?.at.toISOString() ?? "no schedule"));
    cursor = page.cursor;
  }
  return ticks.toReversed();
}
