/**
 * Changes of runs, for streams of events: starts and ends since a position, and marks of single runs
 * that differ after each change. Read from PostgreSQL by index, so that no run pays for it, and all
 * servers of a database tell the same. Used by the server.
 */

import { type Phase, type Status, statusOf } from "../../values/phase.js";

export interface RunChange {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  /** `changed`: anything about a run that somebody watches. */
  readonly change: "started" | "ended" | "changed";
  readonly status: Status;
  readonly phase: Phase;
  readonly step: string | null;
  readonly at: Date;
}

/** How far a stream has come: the id of the newest run, and the time in microseconds. */
export interface ChangePosition {
  readonly id: string;
  readonly us: string;
}

export interface Changes {
  /** Oldest first. */
  readonly changes: readonly RunChange[];
  /** How many more there were since `after`. */
  readonly more: number;
  readonly position: ChangePosition;
}

export interface ChangeReader {
  /**
   * The newest changes since `after`, at most `limit` starts and ends. Looks from `from` on, some time
   * before `after`, because a transaction may commit late. null: only where the stream stands.
   */
  changes(
    since: { readonly after: ChangePosition; readonly from: ChangePosition } | null,
    limit: number,
  ): Promise<Changes>;
  /** Those of these runs that exist, each with a mark that differs after every change. */
  marks(runIds: readonly string[]): Promise<readonly { readonly change: RunChange; readonly mark: string }[]>;
}

type Call = <Row>(name: string, values: readonly unknown[]) => Promise<Row[]>;

interface ChangeRow {
  change: "started" | "ended";
  id: string | null;
  name: string;
  version: number;
  queue: string;
  phase: Phase;
  step: string | null;
  at: string;
}

export function changesOver(call: Call): ChangeReader {
  return {
    async changes(since, limit) {
      const position =
        since === null ? [null, null, null, null] : [since.after, since.from].flatMap(valuesOf);
      const rows = await call<ChangeRow & { more: number; last_id: string; last_us: string }>(
        "list_changes",
        [...position, limit],
      );
      const { more, last_id: id, last_us: us } = rows[0]!;
      const found = rows.filter((row) => row.id !== null);
      return { changes: found.map((row) => toChange(row, row.change)), more, position: { id, us } };
    },
    async marks(runIds) {
      if (runIds.length === 0) return [];
      const rows = await call<Omit<ChangeRow, "change"> & { mark: string }>("run_marks", [runIds]);
      return rows.map((row) => ({ change: toChange(row, "changed"), mark: row.mark }));
    },
  };
}

function valuesOf({ id, us }: ChangePosition): string[] {
  return [id, us];
}

function toChange(row: Omit<ChangeRow, "change">, change: RunChange["change"]): RunChange {
  return {
    runId: row.id!,
    name: row.name,
    version: row.version,
    queue: row.queue,
    change,
    status: statusOf(row.phase),
    phase: row.phase,
    step: row.step,
    at: new Date(row.at),
  };
}
