/**
 * What must hold between the operations of a scene and what is stored: at once after a pair, and again when all is quiet. Each
 * law is one look at the database, compared with the ledger; a violation is listed by run.
 */

import { expect } from "vitest";
import type { TestDatabase } from "../support/database.js";
import type { Scene } from "./scene.js";

const terminal = ["done", "failed", "cancelled"];

/** Runs that wait although their inbox holds what they wait for and have not seen. */
export async function lostWakeUps({ sql }: TestDatabase, queue: string): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    `select r.id from runs r where r.queue = $1 and r.status = 'awaiting_signal' and exists (
       select 1 from signals s where s.run_id = r.id and s.consumed_at is null
         and r.awaits -> 'names' ? s.name and s.payload @> coalesce(r.awaits -> 'match', s.payload)
         and s.seq <> all (coalesce(r.shown, '{}')))`,
    [queue],
  );
  return rows.map(({ id }) => id);
}

export interface Row {
  readonly id: string;
  readonly status: string;
  readonly locked_by: string | null;
  readonly hold: number;
  readonly result: string | null;
  readonly partition_key: string | null;
  readonly concurrency: string | null;
  readonly inbox_seq: number;
  /** Unconsumed signals. */
  readonly inbox: number;
  readonly children_pending: number;
  /** Children of its last spawn that are not terminal. */
  readonly children_live: number;
}

async function look({ database: { sql }, queue }: Scene): Promise<Map<string, Row>> {
  const rows = await sql<Row>(
    `select r.id, r.status, r.locked_by, r.hold, r.result, r.partition_key, r.concurrency, r.inbox_seq, r.children_pending,
       (select count(*)::int from signals s where s.run_id = r.id and s.consumed_at is null) as inbox,
       (select count(*)::int from runs c where c.parent_id = r.id and c.child_of = r.spawn
         and c.status not in ('done', 'failed', 'cancelled')) as children_live
     from runs r where r.queue = $1 order by r.id`,
    [queue],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** What holds at any instant. Answers the runs that have ended. */
export async function expectLawful(scene: Scene): Promise<Map<string, Row>> {
  const rows = await look(scene);
  const holders = [...rows.values()].filter((row) => row.locked_by !== null);
  expect(holders.filter(({ status }) => status !== "executing" && status !== "cancelled")).toEqual([]);
  const keys = holders.flatMap(({ partition_key: key }) => key ?? []);
  expect(new Set(keys).size, "one holder per key").toBe(keys.length);
  const slots = holders.flatMap(({ concurrency }) => concurrency ?? []);
  expect(new Set(slots).size, "one holder per slot").toBe(slots.length);
  for (const row of rows.values()) {
    const delivered = scene.delivered.filter((id) => id === row.id).length;
    const consumed = scene.consumed.filter((signal) => signal.startsWith(`${row.id}/`)).length;
    expect(row.inbox_seq, "signals counted").toBe(delivered);
    expect(row.inbox, "signals kept").toBe(terminal.includes(row.status) ? 0 : delivered - consumed);
    if (row.status === "awaiting_children") expect(row.children_pending).toBe(row.children_live);
    if (row.status === "awaiting_children") expect(row.children_live).toBeGreaterThan(0);
  }
  expect(await lostWakeUps(scene.database, scene.queue), "lost wake-ups").toEqual([]);
  return new Map([...rows].filter(([, { status }]) => terminal.includes(status)));
}

/** What holds when nothing is left to do; `before` are the runs that had ended right after the pair. */
export async function expectQuiet(scene: Scene, before: Map<string, Row>): Promise<Map<string, Row>> {
  await expectLawful(scene);
  const rows = await look(scene);
  for (const [id, row] of rows) {
    expect(terminal, `run ${id} is stuck`).toContain(row.status);
    expect(row.locked_by, "a holder of an ended run").toBeNull();
    if (before.has(id)) expect(row.status, "terminal is final").toBe(before.get(id)!.status);
    expect(row.status === "cancelled", "cancelled, as answered").toBe(scene.cancelled.has(id));
    expect(row.result, "the result of the one outcome that ended it").toEqual(scene.ends.get(id) ?? null);
    if (row.status === "cancelled" || before.has(id)) continue;
    const consumed = scene.consumed.filter((signal) => signal.startsWith(`${id}/`));
    expect(consumed, "every signal is shown, once").toHaveLength(row.inbox_seq);
  }
  expect(scene.subjects.filter(({ runId }) => !rows.has(runId))).toHaveLength(scene.swept);
  expect(new Set(scene.applied).size, "one outcome per claim and turn").toBe(scene.applied.length);
  expect(new Set(scene.consumed).size, "each signal consumed once").toBe(scene.consumed.length);
  return rows;
}
