/**
 * The store on PostgreSQL: each operation is one call of one SQL function (`migrations/`), sent as one unnamed
 * statement, so it works the same behind a pooler in transaction mode. Batches travel as one array per column.
 * This file only encodes and decodes; what the functions guarantee is written at their heads.
 */

import type pg from "pg";
import { InvalidOption, KeyConflict } from "../../define/errors.js";
import { fromJson } from "../../define/json.js";
import type { Transaction } from "../../define/transaction.js";
import type {
  Cancellation,
  Claim,
  Claimable,
  Claimed,
  ClaimedRun,
  ClaimRequest,
  ClientStore,
  Commit,
  EndedRun,
  JournalEntry,
  ListedStep,
  NewRun,
  NewSignal,
  Offer,
  RecordVerdict,
  Registration,
  RunFilter,
  SignalVerdict,
  StartedRun,
  StoredChild,
  StoredLimit,
  StoredRun,
  StoredSignal,
  StoreTransaction,
  Verdict,
  WhyFacts,
  WorkerStore,
} from "../store.js";
import { type Address, openPool, types } from "./database.js";
import { explain, isOutage, isRetryable, sqlState } from "./database-errors.js";
import { recordArguments, type StepRow, toListedStep, toRecordVerdicts } from "./journal-rows.js";
import { column, quoteName } from "./literals.js";
import {
  childOf,
  type ClaimRow,
  committed,
  detailOf,
  isEnd,
  type OtherVerdict,
  type RunRow,
  shard,
  signalValues,
  type StartRow,
  startValues,
  toClaimable,
  toClaimedRun,
  toRun,
  toStarted,
  toVerdict,
} from "./rows.js";
import { UserTransactions } from "./user-transactions.js";

const retries = 5;

export class PostgresStore implements ClientStore, WorkerStore {
  readonly address: Address;
  readonly #pool: pg.Pool;
  readonly #transactions: UserTransactions;
  readonly #schema: string;

  constructor(address: Address, options: { connections: number; pool?: pg.Pool }) {
    this.address = address;
    this.#pool = options.pool ?? openPool(address.url, options.connections);
    this.#transactions = new UserTransactions(address);
    this.#schema = quoteName(address.schema);
  }

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#transactions.end()]);
  }

  async begin(): Promise<StoreTransaction> {
    const { client, ...ends } = await this.#transactions.begin();
    // The same calls, on that connection: one at a time, never waiting for a lock, since an error would abort it.
    const inside = new PostgresStore(this.address, { connections: 0, pool: client as unknown as pg.Pool });
    return {
      ...ends,
      tx: client as unknown as Transaction,
      record: async (entry) => (await inside.record([entry], { patient: false }))[0]!,
      apply: async (commit) => {
        const { verdicts, claimable } = await inside.commit([commit], { patient: false });
        return { verdict: verdicts[0]!, claimable };
      },
    };
  }

  async start(
    runs: readonly NewRun[],
    { allOrNothing, claim }: { allOrNothing: boolean; claim: Claim | null },
  ): Promise<StartedRun[]> {
    const rows = await this.#call<StartRow>("start", startValues(runs, { allOrNothing, claim }));
    return toStarted(rows);
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    const { floor, after } = request;
    const rows = await this.#call<ClaimRow>("claim", [
      shard,
      request.queue,
      request.workerId,
      request.claimId,
      request.limit,
      column(request.names, (name) => name),
      column(request.versions, (version) => version),
      floor?.[0],
      floor?.[1],
      after?.[0],
      after?.[1],
      after?.[2],
    ]);
    const last = rows.pop();
    if (last === undefined || last.meta === null) throw new Error("pawl.claim answered without its last row");
    const meta = JSON.parse(last.meta) as {
      floor: Claimed["floor"];
      after: Claimed["after"];
      due_ms: number | null;
      more: boolean;
    };
    return {
      runs: rows.map(toClaimedRun),
      floor: meta.floor,
      after: meta.after,
      dueMs: meta.due_ms,
      more: meta.more,
    };
  }

  async commit(
    commits: readonly Commit[],
    { patient }: { patient: boolean },
  ): Promise<{ verdicts: Verdict[]; claimable: Claimable[] }> {
    const finished = patient ? await this.#finish(commits) : null;
    if (finished !== null) return finished;
    const [answer] = await this.#call<{
      committed: number;
      others: string | null;
      claimable: string | null;
      handed: string | null;
    }>("commit", [
      shard,
      column(commits, (commit) => commit.runId),
      column(commits, (commit) => commit.claimId),
      column(commits, (commit) => commit.turn),
      column(commits, ({ transition }) => (transition.kind === "suspend" ? "await" : transition.kind)),
      column(commits, ({ transition }) => ("step" in transition ? transition.step : null)),
      column(commits, ({ transition }) => ("state" in transition ? transition.state : null)),
      column(commits, ({ transition }) => ("result" in transition ? transition.result : null)),
      column(commits, ({ transition }) => ("error" in transition ? transition.error : null)),
      column(commits, ({ transition }) => ("delayMs" in transition ? transition.delayMs : null)),
      column(commits, ({ transition }) => ("priority" in transition ? transition.priority : null)),
      column(commits, (commit) => commit.inboxSeq || null),
      column(commits, ({ parentId, transition }) => (isEnd(transition) ? parentId : null)),
      column(commits, (commit) => commit.partitionKey),
      column(commits, ({ transition }) => detailOf(transition)),
      commits.find(({ next }) => next !== null)?.next?.workerId,
      column(commits, ({ next }) => next && next.claimId),
      patient,
    ]);
    const others = answer?.others ? (JSON.parse(answer.others) as OtherVerdict[]) : [];
    if (answer?.committed !== commits.length - others.length) {
      throw new Error(
        `pawl.commit answered for ${answer?.committed} and ${others.length} of ${commits.length} runs`,
      );
    }
    const verdicts = new Array<Verdict>(commits.length).fill(committed);
    for (const other of others) verdicts[other.position - 1] = toVerdict(other);
    for (const [position, row] of JSON.parse(answer.handed ?? "[]") as [number, ClaimRow][]) {
      const verdict = verdicts[position - 1]!;
      if (verdict.kind === "committed") verdicts[position - 1] = { ...verdict, handed: toClaimedRun(row) };
    }
    return { verdicts, claimable: toClaimable(answer.claimable) };
  }

  /** Commits a run that is done by itself, which needs fewer statements; null if that is not what is asked for, or not possible. */
  async #finish([only, ...others]: readonly Commit[]): Promise<{
    verdicts: Verdict[];
    claimable: Claimable[];
  } | null> {
    if (only === undefined || others.length > 0) return null;
    const { transition, parentId, next } = only;
    if (transition.kind !== "done" || parentId !== null) return null;
    try {
      const [row] = await this.#call<{ claimable: string | null; handed: string | null }>("finish", [
        shard,
        only.runId,
        only.claimId,
        only.turn,
        transition.step,
        transition.result,
        only.partitionKey,
        next?.workerId,
        next?.claimId,
      ]);
      if (row === undefined) return null;
      const handed = row.handed === null ? null : toClaimedRun(JSON.parse(row.handed) as ClaimRow);
      return { verdicts: [{ ...committed, handed }], claimable: toClaimable(row.claimable) };
    } catch (error) {
      if (isOutage(error)) throw error;
      // Locked, or refused: the general way tells which, and what to do about it.
      return null;
    }
  }

  async record(
    entries: readonly JournalEntry[],
    { patient }: { patient: boolean },
  ): Promise<RecordVerdict[]> {
    const [row] = await this.#call<{ record: string | null }>("record", [
      shard,
      ...recordArguments(entries, patient, childOf),
    ]);
    return toRecordVerdicts(row!.record, entries.length);
  }

  async journal(runId: string, after: string): Promise<ListedStep[]> {
    const rows = await this.#call<StepRow>("journal", [shard, runId, after]);
    return rows.map(toListedStep);
  }

  async inboxSeqs(runIds: readonly string[]): Promise<Map<string, number>> {
    const ids = column(runIds, (id) => id);
    const rows = await this.#call<{ id: string; inbox_seq: number }>("inbox_seqs", [shard, ids]);
    return new Map(rows.map((row) => [row.id, row.inbox_seq]));
  }

  async inbox(runId: string, { after, upTo }: { after: number; upTo: number }): Promise<StoredSignal[]> {
    const rows = await this.#call<{
      seq: number;
      name: string;
      payload: string;
      received_at: string;
      matched: boolean;
    }>("inbox", [shard, runId, after, upTo]);
    return rows.map(({ seq, name, payload, received_at, matched }) => {
      return { seq, name, payload: fromJson(payload), receivedAt: new Date(received_at), matched };
    });
  }

  async children(runId: string, after: number): Promise<StoredChild[]> {
    const rows = await this.#call<{
      position: number;
      id: string;
      name: string;
      status: StoredChild["phase"];
      result: string | null;
      error: string | null;
      created: boolean;
    }>("children", [shard, runId, after]);
    return rows.map(({ id, status, ...rest }) => ({ runId: id, phase: status, ...rest }));
  }

  async signal(
    signals: readonly NewSignal[],
    { patient, offer = null }: { patient: boolean; offer?: Offer | null },
  ): Promise<{
    verdicts: SignalVerdict[];
    claimable: Claimable[];
    handed: { queue: string; run: ClaimedRun } | null;
  }> {
    const [only] = signals;
    if (only !== undefined && signals.length === 1) {
      const { runId, name, payload, dedupKey } = only;
      const [row] = await this.#call<{
        claimable: string | null;
        queue: string | null;
        handed: string | null;
      }>("signal_one", [
        shard,
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
        const { queue, handed } = row;
        return {
          verdicts: ["delivered"],
          claimable: toClaimable(row.claimable),
          handed:
            queue === null || handed === null
              ? null
              : { queue, run: toClaimedRun(JSON.parse(handed) as ClaimRow) },
        };
      }
    }
    const rows = await this.#call<{ verdict: SignalVerdict; claimable: string | null }>(
      "signal",
      signalValues(signals, { patient }),
    );
    return {
      verdicts: rows.map(({ verdict }) => verdict),
      claimable: toClaimable(rows[0]?.claimable ?? null),
      handed: null,
    };
  }

  async cancel(
    runId: string,
    { reason, cascade }: { reason: string | null; cascade: boolean },
  ): Promise<Cancellation> {
    const [row] = await this.#call<{
      verdict: Cancellation["verdict"];
      status: Cancellation["phase"];
      cancelled: string | null;
      claimable: string | null;
    }>("cancel", [shard, runId, reason, cascade]);
    return {
      verdict: row!.verdict,
      phase: row!.status,
      runIds: row!.cancelled === null ? [] : (JSON.parse(row!.cancelled) as string[]),
      claimable: toClaimable(row!.claimable),
    };
  }

  async why(runId: string): Promise<WhyFacts | null> {
    const [row] = await this.#call<{ why: string | null }>("why", [shard, runId]);
    return row?.why ? (fromJson(row.why) as unknown as WhyFacts) : null;
  }

  async setLimit({ name, allowed, periodMs, burst }: StoredLimit): Promise<boolean> {
    const [row] = await this.#call<{ set_limit: boolean }>("set_limit", [name, allowed, periodMs, burst]);
    return row?.set_limit ?? false;
  }

  async bringForward(name: string, limit: number): Promise<number> {
    const [row] = await this.#call<{ bring_forward: number }>("bring_forward", [shard, name, limit]);
    return row?.bring_forward ?? 0;
  }

  async limits(): Promise<StoredLimit[]> {
    const rows = await this.#call<{ name: string; allowed: number; period_ms: number; burst: number }>(
      "list_limits",
      [],
    );
    return rows.map(({ period_ms: periodMs, ...rest }) => ({ ...rest, periodMs }));
  }

  async release(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]> {
    const rows = await this.#call<{ release: string }>("release", [
      shard,
      column(claims, (claim) => claim.runId),
      column(claims, (claim) => claim.claimId),
    ]);
    return rows.map((row) => row.release);
  }

  async register({ workerId, leaseMs, queues, info, definitions }: Registration): Promise<void> {
    await this.#call("register", [
      workerId,
      leaseMs,
      column(queues, (queue) => queue),
      info,
      column(definitions, (definition) => definition.name),
      column(definitions, (definition) => definition.version),
      column(definitions, (definition) => definition.kind),
      column(definitions, (definition) => definition.queue),
      column(definitions, (definition) => definition.priority),
      column(definitions, (definition) => definition.retentionMs),
    ]);
  }

  async unregister(workerId: string): Promise<void> {
    await this.#call("unregister", [shard, workerId]);
  }

  async reap(limit: number): Promise<number> {
    const [row] = await this.#call<{ reaped: number }>("reap", [shard, limit]);
    return row?.reaped ?? 0;
  }

  async place(limit: number): Promise<string[]> {
    const rows = await this.#call<{ place_runs: string }>("place_runs", [shard, limit]);
    return rows.map((row) => row.place_runs);
  }

  async repairKeys(after: string | null, limit: number): Promise<{ last: string | null; queues: string[] }> {
    const [row] = await this.#call<{ last: string | null; queues: string }>("repair_keys", [
      shard,
      after,
      limit,
    ]);
    return { last: row!.last, queues: JSON.parse(row!.queues) as string[] };
  }

  async sweep(limit: number): Promise<number> {
    const [row] = await this.#call<{ sweep: number }>("sweep", [shard, limit]);
    return row?.sweep ?? 0;
  }

  async get(runIds: readonly string[]): Promise<StoredRun[]> {
    const rows = await this.#call<RunRow>("get", [shard, column(runIds, (id) => id)]);
    return rows.map(toRun);
  }

  async list(
    filter: RunFilter,
  ): Promise<{ runs: StoredRun[]; last: { startedAt: string; runId: string } | null }> {
    const rows = await this.#call<RunRow>("list", [
      shard,
      filter.name,
      filter.version,
      filter.phases && `{${filter.phases.join(",")}}`,
      filter.queue,
      filter.since,
      filter.until,
      filter.before?.startedAt,
      filter.before?.runId,
      filter.limit,
    ]);
    const last = rows.at(-1);
    return { runs: rows.map(toRun), last: last ? { startedAt: last.inserted_at, runId: last.id } : null };
  }

  async ended(runIds: readonly string[]): Promise<EndedRun[]> {
    const rows = await this.#call<{
      id: string;
      status: EndedRun["phase"];
      result: string | null;
      error: string | null;
    }>("results", [shard, column(runIds, (id) => id)]);
    return rows.map((row) => ({ runId: row.id, phase: row.status, result: row.result, error: row.error }));
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  async #call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    const text = `select * from ${this.#schema}.${name}(${values.map((_, index) => `$${index + 1}`).join(",")})`;
    for (let attempt = 0; ; attempt++) {
      try {
        const { rows } = await this.#pool.query({ text, values: values as unknown[], types });
        return rows as Row[];
      } catch (error) {
        if (isRetryable(error) && attempt < retries) continue;
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
        if (sqlState(error) === "PW422") throw new InvalidOption((error as Error).message, { cause: error });
        throw explain(error, this.address);
      }
    }
  }
}
