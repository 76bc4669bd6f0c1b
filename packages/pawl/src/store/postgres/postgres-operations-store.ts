/**
 * The calls of operators to PostgreSQL: reruns, bulk operations, pauses, the action log. This file only
 * encodes and decodes; each SQL function states its guarantees in its header.
 */

import { fromJson } from "../../values/json.js";
import type { Json } from "../../values/json-types.js";
import type {
  ActionFilter,
  Actor,
  BulkAction,
  BulkSettings,
  RerunRequest,
  RerunVerdict,
  RunFilter,
  StoredAction,
  StoredBulk,
  StoredBulkResult,
} from "../client-store.js";
import type { PausedRuns, PauseStore, StoredPause } from "../pauses.js";
import { type ChangeReader, changesOver } from "../reports/changes.js";
import { reportsOver } from "../reports/postgres-reports.js";
import type { Prefixes, ReportTransport } from "../reports/reports.js";
import type { BulkBatch } from "../worker-store.js";
import { toClaimable } from "./rows.js";
import { actorText, column } from "./literals.js";
import { PostgresQueueStore } from "./postgres-queue-store.js";

interface BulkRow {
  id: string;
  status: StoredBulk["status"];
  action: BulkAction;
  filter: string;
  who: string;
  counted: string;
  done: string;
  skipped: string;
  failed: string;
  error: string | null;
  started_at: string;
  completed_at: string | null;
}

export class PostgresOperationsStore extends PostgresQueueStore {
  /** The reports for callers with these prefixes (null: all names and queues). */
  reports(prefixes: Prefixes | null = null): ReportTransport {
    return reportsOver((name, values) => this.callAside(name, values), prefixes);
  }

  /** Changes of runs, for streams of events. */
  readonly changes: ChangeReader = changesOver((name, values) => this.callAside(name, values));

  async rerun(
    runId: string,
    { from, input, state, version, idempotencyKey }: RerunRequest,
    by: Actor,
  ): Promise<RerunVerdict> {
    const [row] = await this.call<{
      verdict: RerunVerdict["kind"];
      id: string;
      name: string;
      version: number;
      queue: string;
      steps: string | null;
      created: boolean;
    }>("rerun", [
      column([runId], (id) => id),
      from,
      input,
      state,
      version,
      JSON.stringify(by),
      idempotencyKey,
    ]);
    const { verdict, id, steps, ...run } = row!;
    switch (verdict) {
      case "rerun":
        return { kind: verdict, runId: id, ...run };
      case "key_conflict":
        return { kind: verdict, runId: id };
      case "unknown_step":
      case "waited_for_children":
      case "signals_lost":
        return { kind: verdict, steps: steps === null ? [] : (JSON.parse(steps) as string[]) };
      case "not_found":
      case "active":
      case "no_steps":
      case "no_state":
      case "no_input":
        return { kind: verdict };
    }
  }

  /**
   * Begins a bulk operation. `where` is the filter as it was given; it is stored beside the filter
   * that the database applies.
   */
  async startBulk(
    operation: {
      readonly action: BulkAction;
      readonly where: Readonly<Record<string, Json>>;
      readonly filter: RunFilter;
      readonly settings: BulkSettings;
      readonly counted: number;
    },
    by: Actor,
  ): Promise<string> {
    const { action, where, settings, counted } = operation;
    const { before: _before, limit: _limit, input, ...filter } = operation.filter;
    const set = Object.entries(filter).filter(([, value]) => value !== null && value !== false);
    // The input itself may be null or false: without this filter it would act on all runs.
    const byInput = input === null ? {} : { input: fromJson(input) };
    const stored = { ...Object.fromEntries(set), ...byInput, where };
    const [row] = await this.call<{ start_bulk: string }>("start_bulk", [
      action,
      JSON.stringify(stored),
      JSON.stringify(settings),
      counted,
      JSON.stringify(by),
    ]);
    return row!.start_bulk;
  }

  async bulk(page: {
    readonly id: string | null;
    readonly before: string | null;
    readonly limit: number;
  }): Promise<StoredBulk[]> {
    const rows = await this.call<BulkRow>("read_bulk", [page.id, page.before, page.limit]);
    return rows.map(toBulk);
  }

  async bulkResults(
    id: string,
    page: {
      readonly outcome: StoredBulkResult["outcome"] | null;
      readonly after: string | null;
      readonly limit: number;
    },
  ): Promise<StoredBulkResult[]> {
    const rows = await this.call<{
      run_id: string;
      outcome: StoredBulkResult["outcome"];
      reason: string | null;
      rerun_id: string | null;
    }>("read_bulk_results", [id, page.outcome, page.after ?? "0", page.limit]);
    return rows.map((row) => ({
      runId: row.run_id,
      outcome: row.outcome,
      reason: row.reason,
      rerunId: row.rerun_id,
    }));
  }

  async stopBulk(id: string, by: Actor): Promise<boolean> {
    const [row] = await this.call<{ stop_bulk: boolean }>("stop_bulk", [id, JSON.stringify(by)]);
    return row?.stop_bulk ?? false;
  }

  async workBulk(
    limit: number,
  ): Promise<{ readonly again: boolean; readonly woke: boolean; readonly batch: BulkBatch | null }> {
    type Row = { again: boolean; woke: boolean } & (BulkBatch | { id: null });
    const [row] = await this.call<Row>("work_bulk", [limit]);
    const { again, woke, ...batch } = row!;
    return { again, woke, batch: batch.id === null ? null : batch };
  }

  async actions(filter: ActionFilter): Promise<StoredAction[]> {
    const { who, action, target, since, until, before, limit } = filter;
    const rows = await this.callAside<{
      id: string;
      at: string;
      who: string;
      source: string;
      action: string;
      target: string | null;
      detail: string | null;
    }>("list_actions", [who, action, target, since, until, before, limit]);
    return rows.map(({ source, at, detail, ...row }) => ({
      ...row,
      at: new Date(at),
      from: source,
      detail: detail === null ? null : fromJson(detail),
    }));
  }
}

function toBulk(row: BulkRow): StoredBulk {
  const { where } = fromJson<{ where: Readonly<Record<string, Json>> }>(row.filter);
  return {
    id: row.id,
    status: row.status,
    action: row.action,
    where,
    who: row.who,
    counted: Number(row.counted),
    done: Number(row.done),
    skipped: Number(row.skipped),
    failed: Number(row.failed),
    error: row.error,
    startedAt: new Date(row.started_at),
    completedAt: row.completed_at === null ? null : new Date(row.completed_at),
  };
}

interface PausedRow {
  id: string;
  verdict: "paused" | "resumed" | "already" | "ended" | "not_found" | "busy";
  status: PausedRuns["runs"][number]["phase"];
  name: string | null;
  claimable?: string | null;
}

export function pauseCalls(
  call: <Row>(name: string, values: readonly unknown[]) => Promise<Row[]>,
): PauseStore {
  return {
    async pauseRuns(runIds, { by, reason }, actor) {
      const ids = column(runIds, (id) => id);
      return toPausedRuns(await call<PausedRow>("pause_runs", [ids, by, reason, actorText(actor)]));
    },
    async resumeRuns(runIds, actor) {
      const given = [column(runIds, (id) => id), actorText(actor)];
      return toPausedRuns(await call<PausedRow>("resume_runs", given));
    },
    async addPause({ scope, name, version }, { by, reason }, actor) {
      const given = [scope, name, version, by, reason, actorText(actor)];
      const [row] = await call<{ add_pause: boolean }>("add_pause", given);
      return row!.add_pause;
    },
    async removePauses({ scope, name, version }, actor) {
      const given = [scope, name, version, actorText(actor)];
      const [row] = await call<{ changed: boolean; still: boolean }>("remove_pauses", given);
      return row!;
    },
    async pauses() {
      const rows = await call<{
        scope: StoredPause["scope"];
        name: string;
        version: number | null;
        paused_by: string;
        reason: string | null;
        paused_at: string;
      }>("list_pauses", []);
      return rows.map(({ scope, name, version, paused_by: by, reason, paused_at: at }) => {
        return { scope, name, version, by, reason, since: new Date(at) };
      });
    },
  };
}

function toPausedRuns(rows: readonly PausedRow[]): PausedRuns {
  return {
    runs: rows.map(({ id, verdict, status, name }) => ({
      runId: id,
      verdict: verdict === "paused" || verdict === "resumed" ? "changed" : verdict,
      phase: status,
      name,
    })),
    claimable: toClaimable(rows[0]?.claimable ?? null),
  };
}
