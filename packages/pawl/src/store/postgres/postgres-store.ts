/**
 * The store on PostgreSQL: a worker's calls, in addition to the client's. Batches travel as one
 * array per column. This file only encodes and decodes; each SQL function states its guarantees in
 * its header.
 */

import type pg from "pg";
import { fromJson } from "../../values/json.js";
import type { JournalEntry, ListedStep, RecordVerdict } from "../journal.js";
import type {
  Claimable,
  Claimed,
  ClaimRequest,
  Commit,
  DatabaseState,
  Recovered,
  Registration,
  RunSetAside,
  StoredChild,
  StoredSignal,
  StoreTransaction,
  Verdict,
  WorkerStore,
} from "../store.js";
import type { HeartbeatAnswer } from "../heartbeats.js";
import { type BeatRow, claimsOf, toHeartbeatAnswer } from "./heartbeats.js";
import type { Address } from "./database.js";
import { isOutage, isRowFault } from "./database-errors.js";
import { type DatabaseStateRow, toDatabaseState } from "./database-state.js";
import { recordArguments, type StepRow, toListedStep, toRecordVerdicts } from "./journal-rows.js";
import { column } from "./literals.js";
import type { CallsOptions } from "./postgres-calls.js";
import { PostgresClientStore } from "./postgres-client-store.js";
import {
  childOf,
  type ClaimRow,
  type FinishRow,
  committed,
  detailOf,
  isEnd,
  type OtherVerdict,
  type OverdueRow,
  type RecoverRow,
  toClaimable,
  toClaimedRun,
  toFinished,
  toOverdue,
  toRecovered,
  toVerdict,
} from "./rows.js";
import { UserTransactions } from "./user-transactions.js";

/** The subjects of a worker's call: the worker itself, claims, or runs that it must hold. */
interface Concerned {
  readonly workerId?: string | undefined;
  readonly claims?: readonly { readonly runId: string; readonly claimId: string }[];
  readonly runIds?: readonly string[];
}

interface InboxSeqRow {
  id: string;
  inbox_seq: number;
}

export class PostgresStore extends PostgresClientStore implements WorkerStore {
  readonly #transactions: UserTransactions;
  /** The name of the token that a worker's calls carry. Null: the caller may do everything. */
  readonly #owner: string | null;
  readonly #owned = new Map<string, PostgresStore>();

  constructor(address: Address, options: CallsOptions & { readonly owner?: string }) {
    super(address, options);
    this.#owner = options.owner ?? null;
    this.#transactions = new UserTransactions(address);
  }

  /**
   * Makes the same calls in the name of a token. The token owns its workers, and calls for workers
   * or claims of others throw `Forbidden`. The name is the identity: a token with a new secret and
   * the same name keeps its workers. Null allows all calls.
   */
  ownedBy(owner: string | null): PostgresStore {
    if (owner === null) return this;
    const known = this.#owned.get(owner);
    if (known !== undefined) return known;
    const owned = new PostgresStore(this.address, { connections: 0, sharing: this, owner });
    this.#owned.set(owner, owned);
    return owned;
  }

  /**
   * Makes a call about a worker, claims or claimed runs. Guards it if the call is in the name of a
   * token.
   */
  #callFor<Row>(concerned: Concerned, name: string, values: readonly unknown[]): Promise<Row[]> {
    if (this.#owner === null) return this.call(name, values);
    const { workerId, claims, runIds } = concerned;
    const guard = {
      owner: this.#owner,
      workerId,
      ...(claims === undefined
        ? { runIds: column(runIds ?? [], (id) => id) }
        : {
            runIds: column(claims, (claim) => claim.runId),
            claimIds: column(claims, (claim) => claim.claimId),
          }),
    };
    return this.callGuarded(guard, name, values);
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#transactions.end()]);
  }

  async begin(): Promise<StoreTransaction> {
    const { pool, mark, write, ...ends } = await this.#transactions.begin();
    // Makes the same calls on that connection, one at a time. They never wait for a lock, since an
    // error would abort the transaction.
    const inside = new PostgresStore(this.address, { connections: 0, pool: pool as pg.Pool, mark });
    return {
      ...ends,
      record: (entry) => write(async () => (await inside.record([entry], { patient: false }))[0]!),
      apply: (commit) =>
        write(async () => {
          const { verdicts, claimable } = await inside.commit([commit], { patient: false });
          return { verdict: verdicts[0]!, claimable };
        }),
    };
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    try {
      return await this.#claim(request);
    } catch (error) {
      // One faulty run must not keep the others of its queue waiting.
      const setAside = isRowFault(error) ? await this.#setAside(request) : [];
      if (setAside.length === 0) throw error;
      return { runs: [], floor: null, busy: null, more: true, dueMs: null, throttled: 0, setAside };
    }
  }

  async #setAside({ queue, workerId, names, versions }: ClaimRequest): Promise<RunSetAside[]> {
    const rows = await this.#callFor<{ id: string; code: string; message: string }>(
      { workerId },
      "set_aside",
      [queue, workerId, column(names, (name) => name), column(versions, (version) => version)],
    );
    return rows.map(({ id, code, message }) => ({ runId: id, code, message }));
  }

  async #claim(request: ClaimRequest): Promise<Claimed> {
    const { floor } = request;
    const rows = await this.#callFor<ClaimRow>({ workerId: request.workerId }, "claim", [
      request.queue,
      request.workerId,
      request.claimId,
      request.limit,
      column(request.names, (name) => name),
      column(request.versions, (version) => version),
      floor?.[0],
      floor?.[1],
      request.bounded ?? false,
    ]);
    const last = rows.pop();
    if (last === undefined || last.meta === null) throw new Error("pawl.claim answered without its last row");
    const meta = JSON.parse(last.meta) as {
      floor: Claimed["floor"];
      busy: Claimed["busy"];
      due_ms: number | null;
      schedule_ms?: number | null;
      more: boolean;
      throttled: number;
    };
    return {
      runs: rows.map(toClaimedRun),
      floor: meta.floor,
      busy: meta.busy,
      dueMs: meta.due_ms,
      scheduleMs: meta.schedule_ms,
      more: meta.more,
      throttled: meta.throttled,
    };
  }

  async commit(
    commits: readonly Commit[],
    { patient }: { patient: boolean },
  ): Promise<{ verdicts: Verdict[]; claimable: Claimable[] }> {
    const finished = patient ? await this.#finish(commits) : null;
    if (finished !== null) return finished;
    const workerId = commits.find(({ next }) => next !== null)?.next?.workerId;
    const [answer] = await this.#callFor<{
      committed: number;
      others: string | null;
      claimable: string | null;
      handed: string | null;
    }>({ workerId, claims: commits }, "commit", [
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
      workerId,
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

  /**
   * Commits the end of a lone run in fewer statements. Returns null if the full function must
   * decide.
   */
  async #finish([only, ...others]: readonly Commit[]): Promise<{
    verdicts: Verdict[];
    claimable: Claimable[];
  } | null> {
    if (only === undefined || others.length > 0) return null;
    const { transition, parentId, next } = only;
    if (transition.kind !== "done" || parentId !== null) return null;
    try {
      const [row] = await this.#callFor<FinishRow>({ workerId: next?.workerId, claims: [only] }, "finish", [
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
      return { verdicts: [toFinished(row)], claimable: toClaimable(row.claimable) };
    } catch (error) {
      if (isOutage(error)) throw error;
      // The run is locked, or the database refused. The full function says which, and what to do
      // about it.
      return null;
    }
  }

  async record(
    entries: readonly JournalEntry[],
    { patient }: { patient: boolean },
  ): Promise<RecordVerdict[]> {
    const [row] = await this.#callFor<{ record: string | null }>({ claims: entries }, "record", [
      ...recordArguments(entries, patient, childOf),
    ]);
    return toRecordVerdicts(row!.record, entries.length);
  }

  override async journal(runId: string, after: string): Promise<ListedStep[]> {
    const rows = await this.#callFor<StepRow>({ runIds: [runId] }, "journal", [runId, after]);
    return rows.map(toListedStep);
  }

  async inboxSeqs(runIds: readonly string[]): Promise<Map<string, number>> {
    const ids = column(runIds, (id) => id);
    const rows =
      this.#owner === null
        ? await this.call<InboxSeqRow>("inbox_seqs", [ids])
        : await this.callForOwned<InboxSeqRow>("inbox_seqs", { owner: this.#owner, runIds: ids });
    return new Map(rows.map((row) => [row.id, row.inbox_seq]));
  }

  async inbox(runId: string, { after, upTo }: { after: number; upTo: number }): Promise<StoredSignal[]> {
    const rows = await this.#callFor<{
      seq: number;
      name: string;
      payload: string;
      received_at: string;
      matched: boolean;
    }>({ runIds: [runId] }, "inbox", [runId, after, upTo]);
    return rows.map(({ seq, name, payload, received_at, matched }) => {
      return { seq, name, payload: fromJson(payload), receivedAt: new Date(received_at), matched };
    });
  }

  async children(runId: string, after: number): Promise<StoredChild[]> {
    const rows = await this.#callFor<{
      position: number;
      id: string;
      name: string;
      status: StoredChild["phase"];
      result: string | null;
      error: string | null;
      created: boolean;
    }>({ runIds: [runId] }, "children", [runId, after]);
    return rows.map(({ id, status, ...rest }) => ({ runId: id, phase: status, ...rest }));
  }

  async release(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]> {
    const rows = await this.#callFor<{ release: string }>({ claims }, "release", [
      column(claims, (claim) => claim.runId),
      column(claims, (claim) => claim.claimId),
    ]);
    return rows.map((row) => row.release);
  }

  async register({ workerId, leaseMs, queues, info, definitions }: Registration): Promise<void> {
    await this.call("register_worker", [
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
      column(definitions, (definition) => definition.timeoutMs ?? null),
      column(definitions, (definition) => definition.declared ?? null),
      this.#owner,
    ]);
  }

  /** Reads whether this database is held, and whether it is a copy. */
  async state(): Promise<DatabaseState> {
    const [row] = await this.call<DatabaseStateRow>("database_state", []);
    return toDatabaseState(row!);
  }

  async unregister(workerId: string): Promise<number> {
    const [row] = await this.#callFor<{ unregister: number }>({ workerId }, "unregister", [workerId]);
    return row!.unregister;
  }

  /** Sends a heartbeat on behalf of a worker that runs elsewhere. */
  async beat(workerId: string, since: string | null): Promise<HeartbeatAnswer> {
    const [row] = await this.#callFor<BeatRow>({ workerId }, "beat", [workerId, since]);
    return toHeartbeatAnswer(row);
  }

  async held(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]> {
    const rows = await this.#callFor<{ still_held: string }>({ claims }, "still_held", [
      column(claims, (claim) => claim.runId),
      column(claims, (claim) => claim.claimId),
    ]);
    return rows.map((row) => row.still_held);
  }

  async paused(claims: readonly { readonly runId: string; readonly claimId: string }[]): Promise<string[]> {
    const rows = await this.#callFor<{ paused_among: string }>({ claims }, "paused_among", [
      column(claims, (claim) => claim.runId),
    ]);
    return rows.map((row) => row.paused_among);
  }

  async heldClaims(workerId: string): Promise<Readonly<Record<string, string>>> {
    const [row] = await this.#callFor<{ claims_of_worker: string }>({ workerId }, "claims_of_worker", [
      workerId,
    ]);
    return claimsOf(row!.claims_of_worker);
  }

  async recover({ limit, repairs, marks }: Parameters<WorkerStore["recover"]>[0]): Promise<Recovered> {
    const [row] = await this.call<RecoverRow>("recover", [limit, repairs, marks]);
    return toRecovered(row!);
  }

  async failOverdue(runIds: readonly string[]): ReturnType<WorkerStore["failOverdue"]> {
    const [row] = await this.#callFor<{
      failed: string | null;
      claimable: string | null;
      due_ms: number | null;
    }>({ runIds }, "fail_overdue", [runIds.length, column(runIds, (id) => id)]);
    const { failed, claimable, due_ms: dueMs } = row!;
    const rows = failed === null ? [] : (JSON.parse(failed) as OverdueRow[]);
    return { failed: rows.map(toOverdue), claimable: toClaimable(claimable), dueMs };
  }

  async sweep(limit: number, after: string | null = null): Promise<{ swept: number; last: string | null }> {
    const [row] = await this.call<{ swept: number; last: string | null }>("sweep", [limit, after]);
    return row!;
  }
}
