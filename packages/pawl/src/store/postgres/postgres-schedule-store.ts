/**
 * The calls of schedules to PostgreSQL. This file only encodes and decodes; each SQL function states
 * its guarantees in its header.
 */

import { readErrorRecord } from "../../values/error-record.js";
import type { Actor } from "../client-store.js";
import type {
  DueSchedule,
  FiredSchedule,
  Firing,
  NewSchedule,
  ScheduledDefinition,
  ScheduleStore,
  StoredSchedule,
  TickRun,
} from "../schedule-store.js";
import { actorText, column } from "./literals.js";
import { PostgresCalls } from "./postgres-calls.js";
import { childOf, toClaimable } from "./rows.js";

type DatesOf<T, Names extends keyof T> = Omit<T, Names> & {
  readonly [Name in Names]: null extends T[Name] ? string | null : string;
};
type ScheduleRow = DatesOf<StoredSchedule, "setAt" | "pausedAt" | "nextAt" | "lastAt" | "skippedAt">;
type DueRow = DatesOf<DueSchedule, "nextAt">;

interface FiredRow extends ScheduledDefinition {
  position: number;
  verdict: FiredSchedule["verdict"];
  runs: string | null;
  cancelled: string | null;
  names: string | null;
  lost: string | null;
  claimable: string | null;
  code: string | null;
  message: string | null;
}

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));

export class PostgresScheduleStore extends PostgresCalls implements ScheduleStore {
  async setSchedule(schedule: NewSchedule, nextAt: Date, by: Actor | null): Promise<boolean> {
    const { name, run, cron, everyMs, timeZone, jitterMs, offsetMs, overlap, catchUp, paused } = schedule;
    const [row] = await this.call<{ set_schedule: boolean }>("set_schedule", [
      name,
      JSON.stringify(childOf(run)),
      cron,
      everyMs,
      timeZone,
      jitterMs,
      offsetMs,
      overlap,
      catchUp,
      paused,
      nextAt,
      actorText(by),
    ]);
    return row?.set_schedule ?? false;
  }

  async schedules(query: {
    name: string | null;
    after: string | null;
    limit: number;
  }): Promise<{ now: Date; schedules: StoredSchedule[] }> {
    const values = [query.name, query.after, query.limit];
    const [row] = await this.callAside<{ now: string; schedules: string | null }>("get_schedules", values);
    const found = JSON.parse(row!.schedules ?? "[]") as ScheduleRow[];
    return { now: new Date(row!.now), schedules: found.map(toSchedule) };
  }

  async pauseSchedule(name: string, paused: boolean, by: Actor | null): Promise<boolean> {
    const values = [name, paused, actorText(by)];
    const [row] = await this.call<{ pause_schedule: boolean }>("pause_schedule", values);
    return row?.pause_schedule ?? false;
  }

  async removeSchedule(name: string, by: Actor | null): Promise<boolean> {
    const [row] = await this.call<{ remove_schedule: boolean }>("remove_schedule", [name, actorText(by)]);
    return row?.remove_schedule ?? false;
  }

  async triggerSchedule(
    name: string,
    suffix: string,
    by: Actor | null,
  ): ReturnType<ScheduleStore["triggerSchedule"]> {
    type Row = ScheduledDefinition & { id: string; created: boolean; at: string };
    const [row] = await this.call<Row>("trigger_schedule", [name, suffix, actorText(by)]);
    if (row === undefined) return null;
    const { id: runId, created, at, queue, definition, version } = row;
    return { runId, created, at: new Date(at), queue, definition, version };
  }

  async backfillSchedule(
    name: string,
    { ticks, from, to }: Parameters<ScheduleStore["backfillSchedule"]>[1],
    by: Actor | null,
  ): ReturnType<ScheduleStore["backfillSchedule"]> {
    type Row = ScheduledDefinition & { at: string; id: string; created: boolean };
    const values = [name, JSON.stringify(ticks), from.toISOString(), to.toISOString(), actorText(by)];
    const rows = await this.call<Row>("backfill_schedule", values);
    const [first] = rows;
    if (first === undefined) return null;
    const { queue, definition, version } = first;
    const runs = rows.map(({ at, id: runId, created }) => ({ at: new Date(at), runId, created }));
    return { queue, definition, version, runs };
  }

  async dueSchedules(limit: number, skip: number): ReturnType<ScheduleStore["dueSchedules"]> {
    type Row = { now: string; due_ms: number | null; due: string | null };
    const [row] = await this.call<Row>("due_schedules", [limit, skip]);
    const due = JSON.parse(row!.due ?? "[]") as DueRow[];
    return {
      now: new Date(row!.now),
      dueMs: row!.due_ms,
      due: due.map((one) => ({ ...one, nextAt: new Date(one.nextAt) })),
    };
  }

  async nextDue(
    queues: readonly string[],
    served: readonly { readonly name: string; readonly version: number }[],
  ): Promise<number | null> {
    const [row] = await this.call<{ next_due: number | null }>("next_due", [
      column(queues, (queue) => queue),
      column(served, ({ name }) => name),
      column(served, ({ version }) => version),
    ]);
    return row!.next_due;
  }

  async fireSchedules(firings: readonly Firing[]): Promise<FiredSchedule[]> {
    const rows = await this.call<FiredRow>("fire_schedules", [JSON.stringify(firings)]);
    const fired: FiredSchedule[] = [];
    for (const row of rows) fired[row.position - 1] = toFired(row);
    return fired;
  }
}

function toSchedule(row: ScheduleRow): StoredSchedule {
  const { lastRun } = row;
  return {
    ...row,
    setAt: new Date(row.setAt),
    pausedAt: toDate(row.pausedAt),
    nextAt: new Date(row.nextAt),
    lastAt: toDate(row.lastAt),
    lastRun: lastRun && {
      phase: lastRun.phase,
      error: lastRun.error && readErrorRecord(lastRun.error),
    },
    skippedAt: toDate(row.skippedAt),
  };
}

function toFired(row: FiredRow): FiredSchedule {
  const { verdict, definition, version, queue } = row;
  switch (verdict) {
    case "busy":
    case "gone":
      return { verdict };
    case "failed":
    case "error":
      return { verdict, code: row.code ?? "", message: row.message ?? "" };
    case "fired":
    case "skipped": {
      const names = JSON.parse(row.names ?? "[]") as string[];
      return {
        verdict,
        definition,
        version,
        queue,
        runs: (JSON.parse(row.runs ?? "[]") as [string, string, boolean][]).map(
          ([at, runId, created]): TickRun => ({ at: new Date(at), runId, created }),
        ),
        cancelled: (JSON.parse(row.cancelled ?? "[]") as string[]).map((runId, index) => {
          return { runId, name: names[index]! };
        }),
        lost: (JSON.parse(row.lost ?? "[]") as [string, string, number][]).map(([runId, name, of]) => {
          return { runId, name, version: of };
        }),
        claimable: toClaimable(row.claimable),
      };
    }
  }
}
