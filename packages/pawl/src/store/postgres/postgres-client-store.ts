/**
 * The client's calls to PostgreSQL. This file only encodes and decodes; each SQL function states
 * its guarantees in its header.
 */

import { fromJson } from "../../values/json.js";
import type { Status } from "../../values/phase.js";
import type { ListedStep, StepCursor } from "../journal.js";
import type {
  Actor,
  Cancellation,
  Claim,
  Claimable,
  ClaimedRun,
  ClientStore,
  CorrelatedAnswer,
  CorrelatedSignal,
  EndedRun,
  FindQuery,
  NewRun,
  NewSignal,
  Offer,
  RunCounts,
  RunFilter,
  SignalTarget,
  SignalVerdict,
  StartedRun,
  StoredGauge,
  StoredLimit,
  StoredRun,
} from "../store.js";
import type { WhyFacts } from "../why-facts.js";
import { type StepRow, toListedStep } from "./journal-rows.js";
import { actorText, column } from "./literals.js";
import type { PauseStore } from "../pauses.js";
import { pauseCalls, PostgresOperationsStore } from "./postgres-operations-store.js";
import {
  type ClaimRow,
  type RunRow,
  signalValues,
  type StartRow,
  startOneValues,
  startValues,
  toClaimable,
  toClaimedRun,
  toRun,
  toStarted,
} from "./rows.js";

/** The maximum number of names to count. */
const maxNames = 10_000;

export class PostgresClientStore extends PostgresOperationsStore implements ClientStore {
  /** Pauses of runs, queues and definitions. */
  readonly pausing: PauseStore = pauseCalls((name, values) => this.call(name, values));

  async start(
    runs: readonly NewRun[],
    { allOrNothing, claim }: { allOrNothing: boolean; claim: Claim | null },
  ): Promise<StartedRun[]> {
    const [only] = runs;
    if (
      only !== undefined &&
      runs.length === 1 &&
      only.version !== null &&
      only.kind !== null &&
      only.rateLimit === null &&
      only.options === null
    ) {
      const [row] = await this.call<{ id: string }>(
        "start_one",
        startOneValues(only, { patient: false, claim }),
      );
      if (row !== undefined) {
        return [
          { runId: row.id, created: true, phase: only.direct ? "executing" : "runnable", conflict: null },
        ];
      }
    }
    const rows = await this.call<StartRow>(
      "start_runs",
      startValues(runs, { allOrNothing, patient: false, claim }),
    );
    return toStarted(rows);
  }

  async signal(
    signals: readonly NewSignal[],
    { patient, offer = null }: { patient: boolean; offer?: Offer | null },
  ): Promise<{
    verdicts: SignalVerdict[];
    targets: (SignalTarget | null)[];
    claimable: Claimable[];
    handed: { queue: string; run: ClaimedRun } | null;
  }> {
    const [only] = signals;
    if (only !== undefined && signals.length === 1) {
      const { runId, name, payload, dedupKey } = only;
      const [row] = await this.call<{
        run_name: string;
        trace: string | null;
        claimable: string | null;
        queue: string | null;
        handed: string | null;
      }>("signal_one", [
        runId,
        name,
        payload,
        dedupKey,
        offer?.workerId,
        offer && column(offer.queues, (queue) => queue),
        offer?.claimId,
        patient,
      ]);
      if (row !== undefined) {
        const { queue, handed, run_name: target, trace } = row;
        return {
          verdicts: ["delivered"],
          targets: [{ name: target, trace }],
          claimable: toClaimable(row.claimable),
          handed:
            queue === null || handed === null
              ? null
              : { queue, run: toClaimedRun(JSON.parse(handed) as ClaimRow) },
        };
      }
    }
    const rows = await this.call<{
      verdict: SignalVerdict;
      run_name: string | null;
      trace: string | null;
      claimable: string | null;
    }>("signal", signalValues(signals, { patient }));
    return {
      verdicts: rows.map(({ verdict }) => verdict),
      targets: rows.map(({ run_name: name, trace }) => (name === null ? null : { name, trace })),
      claimable: toClaimable(rows[0]?.claimable ?? null),
      handed: null,
    };
  }

  async signalCorrelated(
    { correlationKey, definition, name, payload, dedupKey }: CorrelatedSignal,
    { patient }: { patient: boolean },
  ): Promise<{ answers: CorrelatedAnswer[]; claimable: Claimable[] }> {
    const rows = await this.call<{
      run_id: string;
      verdict: SignalVerdict;
      run_name: string;
      claimable: string | null;
    }>("deliver_correlated", [correlationKey, definition, name, payload, dedupKey, patient]);
    return {
      answers: rows.map(({ run_id: runId, verdict, run_name }) => ({ runId, name: run_name, verdict })),
      claimable: rows.flatMap((row) => toClaimable(row.claimable)),
    };
  }

  async find(
    { idempotencyKey, uniqueKey, correlationKey, name }: FindQuery,
    limit: number,
  ): Promise<StoredRun[]> {
    const key = uniqueKey && `\\x${Buffer.from(uniqueKey).toString("hex")}`;
    const rows = await this.call<RunRow>("find", [idempotencyKey, key, correlationKey, name, limit]);
    return cut(rows, "id").rows.map(toRun);
  }

  async cancel(
    runId: string,
    { reason, cascade, by }: { reason: string | null; cascade: boolean; by?: Actor },
  ): Promise<Cancellation> {
    const called = by === undefined ? "cancel" : "cancel_as";
    const [row] = await this.call<{
      verdict: Cancellation["verdict"];
      status: Cancellation["phase"];
      cancelled: string | null;
      names: string | null;
      lost: string | null;
      claimable: string | null;
    }>(called, [...(by === undefined ? [] : [JSON.stringify(by)]), runId, reason, cascade]);
    return {
      verdict: row!.verdict,
      phase: row!.status,
      runIds: row!.cancelled === null ? [] : (JSON.parse(row!.cancelled) as string[]),
      names: row!.names === null ? [] : (JSON.parse(row!.names) as string[]),
      lost: (JSON.parse(row!.lost ?? "[]") as [string, string, number][]).map(([id, name, version]) => ({
        runId: id,
        name,
        version,
      })),
      claimable: toClaimable(row!.claimable),
    };
  }

  async why(runId: string): Promise<WhyFacts | null> {
    const [row] = await this.call<{ why: string | null }>("why", [runId]);
    return row?.why ? fromJson<WhyFacts>(row.why) : null;
  }

  async setLimit({ name, allowed, periodMs, burst, concurrent }: StoredLimit, by?: Actor): Promise<boolean> {
    const values = [name, allowed, periodMs, burst, concurrent, actorText(by)];
    const [row] = await this.call<{ put_limit: boolean }>("put_limit", values);
    return row?.put_limit ?? false;
  }

  async bringForward(limit: number): Promise<number> {
    const [row] = await this.call<{ moved: number }>("bring_forward", [limit]);
    return row?.moved ?? 0;
  }

  async limits(): Promise<StoredLimit[]> {
    const rows = await this.call<Omit<StoredLimit, "periodMs"> & { period_ms: number | null }>(
      "all_limits",
      [],
    );
    return rows.map(({ period_ms: periodMs, ...rest }) => ({ ...rest, periodMs }));
  }

  async get(runIds: readonly string[]): Promise<StoredRun[]> {
    const rows = await this.call<RunRow>("get", [column(runIds, (id) => id)]);
    return cut(rows, "id").rows.map(toRun);
  }

  async list(
    filter: RunFilter,
  ): Promise<{ runs: StoredRun[]; last: { startedAt: string; runId: string } | null }> {
    const rows = await this.callAside<RunRow>("list", [
      ...filterValues(filter),
      filter.before?.startedAt,
      filter.before?.runId,
      filter.input,
      filter.limit,
      laterFilters(filter),
    ]);
    const { rows: listed, more } = cut(rows, "id");
    const last = more || listed.length === filter.limit ? listed.at(-1) : undefined;
    return { runs: listed.map(toRun), last: last ? { startedAt: last.inserted_at, runId: last.id } : null };
  }

  async count(filter: RunFilter): Promise<number> {
    const values = [...filterValues(filter), filter.input, laterFilters(filter)];
    const [row] = await this.callAside<{ count_listed: string }>("count_listed", values);
    return Number(row?.count_listed ?? 0);
  }

  /** Counts the runs of each name. */
  async countRuns(): Promise<RunCounts[]> {
    type Row = { name: string } & Record<Status, string>;
    const rows = await this.callAside<Row>("count_runs", [maxNames]);
    return rows.map(({ name, running, completed, failed, cancelled }) => ({
      name,
      counts: {
        running: Number(running),
        completed: Number(completed),
        failed: Number(failed),
        cancelled: Number(cancelled),
      },
    }));
  }

  /** Limits how long Pawl keeps a run after its end. Applies to every run started from now on. */
  async setRetentionCeiling(days: number): Promise<void> {
    await this.call("set_retention_ceiling", [days]);
  }

  async ended(runIds: readonly string[]): Promise<{ runs: EndedRun[]; more: boolean }> {
    const rows = await this.call<{
      id: string;
      status: EndedRun["phase"];
      result: string | null;
      error: string | null;
    }>("results", [column(runIds, (id) => id)]);
    const { rows: ended, more } = cut(rows, "id");
    const runs = ended.map(({ id, status, result, error }) => ({ runId: id, phase: status, result, error }));
    return { runs, more };
  }

  /** Returns the names and queues of those runs that exist. */
  async named(runIds: readonly string[]): Promise<{ runId: string; name: string; queue: string }[]> {
    type Row = { id: string; name: string; queue: string };
    const rows = await this.call<Row>("named", [column(runIds, (id) => id)]);
    return rows.map(({ id, name, queue }) => ({ runId: id, name, queue }));
  }

  async unregistered(names: readonly string[]): Promise<{ name: string; known: readonly string[] }[]> {
    const rows = await this.call<{ name: string; known: string }>("unregistered", [
      column(names, (name) => name),
    ]);
    return rows.map(({ name, known }) => ({ name, known: JSON.parse(known) as string[] }));
  }

  /** Returns the values for the metrics. Counts stop at `most`. */
  gauges(most: number): Promise<StoredGauge[]> {
    return this.callAside<StoredGauge>("gauges", [most]);
  }

  async steps(
    runId: string,
    after: StepCursor | null,
  ): Promise<{ steps: ListedStep[]; last: StepCursor | null }> {
    const values = [runId, after?.seq ?? 0, after?.startedAt, after?.name];
    const { rows, more } = cut(await this.call<StepRow>("list_steps", values), "name");
    const done = rows.findLast(({ seq }) => seq !== null);
    const pending = rows.findLast(({ seq }) => seq === null);
    const last = {
      seq: done?.seq ?? after?.seq ?? 0,
      startedAt: pending?.started_at ?? after?.startedAt ?? null,
      name: pending?.name ?? after?.name ?? null,
    };
    return { steps: rows.map(toListedStep), last: more ? last : null };
  }

  async journal(runId: string, after: string): Promise<ListedStep[]> {
    const rows = await this.call<StepRow>("journal", [runId, after]);
    return rows.map(toListedStep);
  }
}

/** Returns the filters that the first version did not have, as JSON. */
function laterFilters({ paused, tags, correlationKey, prefixes = null }: RunFilter): string | null {
  if (!paused && tags === null && correlationKey === null && prefixes === null) return null;
  return JSON.stringify({
    paused: paused || undefined,
    tags: tags ?? undefined,
    correlationKey: correlationKey ?? undefined,
    names: prefixes?.names ?? undefined,
    queues: prefixes?.queues ?? undefined,
  });
}

/** Removes the last row if its key is null. Such a row says that the byte limit cut the answer. */
function cut<Row, Key extends keyof Row>(rows: Row[], key: Key): { rows: Row[]; more: boolean } {
  const more = rows.at(-1)?.[key] === null;
  return { rows: more ? rows.slice(0, -1) : rows, more };
}

/** Returns the arguments that listing and counting share. */
function filterValues(filter: RunFilter): unknown[] {
  return [
    filter.name,
    filter.version,
    filter.phases && `{${filter.phases.join(",")}}`,
    filter.queue,
    filter.kind,
    filter.error,
    filter.parentId,
    filter.since,
    filter.until,
  ];
}
