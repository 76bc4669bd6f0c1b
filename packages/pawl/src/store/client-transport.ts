/**
 * The way from a client to its runs. There are two: straight to Postgres
 * (`api/postgres-transport.ts`) and through a server (`http/http-transport.ts`). The client
 * (`api/client.ts`) checks options, encodes values and turns answers into errors; a transport only
 * carries calls. Every call answers with committed facts. It throws one of the errors of
 * `values/errors.ts`: `Unavailable` means that the outcome of the call is unknown. A server may
 * also throw where Postgres answers `null` or a verdict; the error is then the same. Types only.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { Phase, Status } from "../values/phase.js";
import type {
  ActionFilter,
  BulkAction,
  BulkSettings,
  Cancellation,
  CorrelatedSignal,
  EndedRun,
  FindQuery,
  NewSignal,
  RerunAnswer,
  RerunRequest,
  SignalVerdict,
  StoredAction,
  StoredBulk,
  StoredBulkResult,
} from "./client-store.js";
import type {
  NewMessage,
  Publication,
  Receipt,
  SentMessage,
  StoredStats,
  StoredSubscription,
  StoredTarget,
  ReceiveFilter,
} from "./queue-store.js";
import type { PauseTransport } from "./pauses.js";
import type { ReportTransport } from "./reports/reports.js";
import type { NewRun, StartedRun, StoredLimit } from "./runs.js";
import type { NewSchedule, Schedule, ScheduleDetail, TickRun } from "./schedule-store.js";
import type { Message, Page, Run, StepPage, Why } from "./views.js";

/** The filters of `runs.list` and `runs.count`; null: any. */
export interface RunQuery {
  readonly name: string | null;
  readonly version: number | null;
  readonly status: Status | null;
  readonly phase: Phase | null;
  readonly queue: string | null;
  readonly kind: AnyDefinition["kind"] | null;
  readonly error: string | null;
  readonly parentId: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  /** JSON that the input contains. */
  readonly input: string | null;
  /** Runs that have all of these tags. */
  readonly tags: Readonly<Record<string, string>> | null;
  readonly correlationKey: string | null;
  /** Only runs that are paused themselves. */
  readonly paused?: boolean;
}

/** A page of them. */
export interface RunPageQuery extends RunQuery {
  /** As the page before gave it; null: the first page. */
  readonly cursor: string | null;
  readonly limit: number;
}

/** Starts and signals. Also the calls that `within` makes in a transaction of the caller. */
export interface SendTransport {
  start(run: NewRun): Promise<StartedRun>;
  /** All of them or none. */
  startMany(runs: readonly NewRun[]): Promise<readonly StartedRun[]>;
  signal(signal: NewSignal): Promise<SignalVerdict>;
  /** To all live runs of a correlation key. */
  signalCorrelated(
    signal: CorrelatedSignal,
  ): Promise<readonly { readonly runId: string; readonly verdict: SignalVerdict }[]>;
}

export interface QueueTransport {
  send(messages: readonly NewMessage[]): Promise<readonly SentMessage[]>;
  receive(
    filter: ReceiveFilter,
    options: { max: number; waitMs: number; signal: AbortSignal | undefined },
  ): Promise<Message[]>;
  /** Answers which were deleted, as `receiptKey` writes them. */
  ack(receipts: readonly Receipt[]): Promise<ReadonlySet<string>>;
  /** Answers which were changed, as `receiptKey` writes them. */
  extend(receipts: readonly Receipt[], visibilityMs: number): Promise<ReadonlySet<string>>;
  /** Of one queue, or (null) of every queue that has messages. */
  stats(queue: string | null): Promise<StoredStats[]>;
}

export interface TopicTransport {
  publish(topic: string, body: string, dedupKey: string | null): Promise<Omit<Publication, "queues">>;
  subscribe(
    pattern: string,
    target: StoredTarget,
    secret: string | null,
  ): Promise<{ id: string; created: boolean }>;
  /** Whether there was such a subscription. */
  unsubscribe(id: string): Promise<boolean>;
  /** All subscriptions, or those with exactly this pattern. */
  subscriptions(pattern: string | null): Promise<StoredSubscription[]>;
}

/** A bulk operation to start. */
interface BulkRequest {
  readonly query: RunQuery;
  readonly action: BulkAction;
  readonly settings: BulkSettings;
}

export interface BulkTransport {
  start(request: BulkRequest): Promise<StoredBulk>;
  /** null: there is no such operation. */
  get(id: string): Promise<StoredBulk | null>;
  /** Newest first, before the operation with this id. */
  list(page: { readonly before: string | null; readonly limit: number }): Promise<StoredBulk[]>;
  /** By run id, after this one. */
  results(
    id: string,
    page: {
      readonly outcome: StoredBulkResult["outcome"] | null;
      readonly after: string | null;
      readonly limit: number;
    },
  ): Promise<StoredBulkResult[]>;
  /** Whether there is such an operation. */
  stop(id: string): Promise<boolean>;
}

export interface ScheduleTransport {
  set(schedule: NewSchedule): Promise<ScheduleDetail & { readonly changed: boolean }>;
  /** null: there is no such schedule. */
  get(name: string): Promise<ScheduleDetail | null>;
  /** A page in order of names, after this name; `cursor` is the name for the next page. */
  list(after: string | null, limit: number): Promise<{ schedules: Schedule[]; cursor: string | null }>;
  /** Whether there is such a schedule. */
  pause(name: string, paused: boolean): Promise<boolean>;
  /** Whether there was such a schedule. */
  remove(name: string): Promise<boolean>;
  /** null: there is no such schedule. */
  trigger(name: string): Promise<{ readonly runId: string } | null>;
  /** The runs of the ticks in `[from, to)`; null: there is no such schedule. */
  backfill(name: string, from: Date, to: Date): Promise<readonly TickRun[] | null>;
}

export interface ClientTransport extends SendTransport {
  readonly queues: QueueTransport;
  readonly bulk: BulkTransport;
  readonly topics: TopicTransport;
  readonly pauses: PauseTransport;
  readonly schedules: ScheduleTransport;
  readonly reports: ReportTransport;
  cancel(
    runId: string,
    options: { reason: string | null; cascade: boolean },
  ): Promise<Pick<Cancellation, "verdict" | "phase"> & { readonly cancelled: number }>;
  rerun(runId: string, request: RerunRequest): Promise<RerunAnswer>;
  /** null: there is no such run. */
  get(runId: string): Promise<Run | null>;
  /** At most 100. */
  find(query: FindQuery): Promise<Run[]>;
  list(query: RunPageQuery): Promise<Page>;
  count(query: RunQuery): Promise<number>;
  /** A page of the steps of a run, completed ones first; none if there is no such run. */
  steps(runId: string, cursor: string | undefined): Promise<StepPage>;
  /** null: there is no such run. */
  why(runId: string): Promise<Why | null>;
  /** Waits for the end of a run; null once `timeoutMs` has passed. */
  result(runId: string, timeoutMs: number | null): Promise<EndedRun | null>;
  /** A page of the action log, newest first. */
  actions(filter: ActionFilter): Promise<StoredAction[]>;
  setLimit(limit: StoredLimit): Promise<void>;
  limits(): Promise<StoredLimit[]>;
  /** Closes connections. Calls that still wait fail with `reason`. */
  close(reason: Error): Promise<void>;
}
