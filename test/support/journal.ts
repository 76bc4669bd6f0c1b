/** What tests of workflows see of a run behind the API: its journal, and whether it is suspended. */

import type { TestDatabase } from "./database.js";
import { until } from "./until.js";

export interface JournalRow {
  readonly name: string;
  readonly kind: string;
  readonly seq: number | null;
  readonly attempt: number;
  readonly output: unknown;
  readonly error: { readonly message?: string; readonly code?: string } | null;
  readonly completed: boolean;
}

/** The journal in the order of delivery, what is pending last. */
export function journalOf({ sql }: TestDatabase, runId: string): Promise<JournalRow[]> {
  return sql<JournalRow>(
    `select name, kind, seq, attempt, output, error, completed_at is not null as completed
     from steps where run_id = $1 order by seq nulls last, name`,
    [runId],
  );
}

/** The names of the completed steps, in the order of delivery. */
export async function recordedBy(database: TestDatabase, runId: string): Promise<string[]> {
  return (await journalOf(database, runId)).filter((step) => step.completed).map((step) => step.name);
}

/** Resolves when no worker holds the run because it waits. */
export async function suspended({ sql }: TestDatabase, runId: string): Promise<void> {
  await until(`run ${runId} is suspended`, async () => {
    const [row] = await sql<{ status: string; locked_by: string | null }>(
      "select status, locked_by from runs where id = $1",
      [runId],
    );
    return row!.status === "awaiting_signal" && row!.locked_by === null;
  });
}

/** Makes all waits of a run due now, as if their time had come. */
export async function makeDue({ sql }: TestDatabase, runId: string): Promise<void> {
  await sql("update steps set due_at = clock_timestamp() where run_id = $1 and completed_at is null", [
    runId,
  ]);
  await sql("update runs set eligible_at = clock_timestamp() where id = $1 and status = 'awaiting_signal'", [
    runId,
  ]);
}
