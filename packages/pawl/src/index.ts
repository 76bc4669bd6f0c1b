/**
 * `pawl`: the public API. Everything that this file does not export may change with every release.
 */

export { connect, type ConnectOptions } from "./api/connect.js";
export type { BrokenRun, Checked } from "./api/check.js";
export { child, type Child } from "./define/child.js";
export type { BatchContext, BatchFailure, BatchItem, BatchOptions } from "./define/batch.js";
export type { ChildRun, JobContext, StepContext } from "./define/context.js";
export type { AnyDefinition, InputOf, Job, Machine, OutputOf, RunId, Workflow } from "./define/definition.js";
export type { Duration } from "./values/duration.js";
export type { ErrorRecord } from "./values/error-record.js";
export * from "./values/errors.js";
export { job, type JobOptions } from "./define/job.js";
export type { Json, Jsonify } from "./values/json-types.js";
export type { Logger, LogMethod } from "./values/logger.js";
export { machine, type MachineOptions } from "./define/machine.js";
export type {
  AwaitOptions,
  AwaitSignal,
  Done,
  Next,
  NextOptions,
  Outcome,
  Retry,
  Spawn,
  Stop,
} from "./define/outcome.js";
export type { Phase, Status } from "./values/phase.js";
export type { ConcurrencyLimit, RateLimit } from "./define/rate-limit.js";
export type { Backoff, Retries } from "./define/retry.js";
export { type Schema, type } from "./define/schema.js";
export {
  type ReceivedSignal,
  signal,
  type SignalMap,
  type SignalOptions,
  type SignalType,
} from "./define/signal.js";
export type { Debounce, StartOptions, Tags } from "./define/start-options.js";
export type { Transaction } from "./define/transaction.js";
export { workflow, type WorkflowOptions } from "./define/workflow.js";
export type {
  EventOptions,
  StepOptions,
  StepRun,
  WorkflowContext,
  WorkflowSteps,
} from "./define/workflow-context.js";
export type { EventListener, EventMap, EventName } from "./observe/events.js";
export { fork, type Adopted, type Forked, type ForkOptions } from "./api/fork.js";
export { databaseState, hold, type DatabaseOptions } from "./api/hold.js";
export type { LimitOptions, RateOptions, SlotOptions } from "./local/limits.js";
export type { ScheduleTick } from "./define/schedule-key.js";
export type { DeclaredSchedule, DeclaredSchedules } from "./schedules/declared.js";
export type { ScheduledStartOptions, ScheduleOptions, ScheduleTimes } from "./schedules/options.js";
export type { Backfilled, BackfillOptions, Schedules } from "./schedules/schedules.js";
export type { CatchUp, Overlap, Schedule, ScheduleDetail, TickRun } from "./store/schedule-store.js";
export type { MetricsOptions, ServeOptions } from "./worker/options.js";
export { migrate, type MigrateOptions } from "./api/migrate.js";
export type { Cancelled, CancelOptions, Limit, Pawl, Rerun, ResultOptions } from "./api/pawl.js";
export type { Action, ActionOptions, ActionPage, Actions } from "./operate/actions.js";
export type {
  Bulk,
  BulkListOptions,
  BulkOperation,
  BulkOptions,
  BulkPage,
  BulkPreview,
  BulkResult,
  BulkResultOptions,
  BulkResultPage,
} from "./operate/bulk.js";
export type { RerunOptions } from "./operate/rerun.js";
export type {
  DefinitionPauseOptions,
  Definitions,
  PauseChange,
  PausedDefinition,
  PausedQueue,
  PauseOptions,
  QueuePauses,
  ResumeOptions,
  RunPauses,
} from "./api/cancel-and-pause.js";
export type {
  Acked,
  Extended,
  Message,
  MessageReceipt,
  Queues,
  QueueStats,
  ReceiveOptions,
  SendItem,
  SendOptions,
  SentMessage,
} from "./api/queues.js";
export type {
  DefinitionListOptions,
  FailuresOptions,
  ReportPageOptions,
  Reports,
  SeriesOptions,
  WaitingOptions,
} from "./operate/reports.js";
export type {
  Declared,
  DefinitionPage,
  FailureGroup,
  Failures,
  KeyRun,
  Keys,
  PartitionKey,
  RegisteredDefinition,
  Series,
  SeriesPoint,
  SlotKey,
  Slots,
  Waiting,
  WaitingRun,
  WorkerInfo,
  Workers,
} from "./store/reports/reports.js";
export type { CountOptions, FindOptions, ListOptions, Page, Pause, Run } from "./api/runs.js";
export type { CorrelationTarget, Signalled, SignalledRuns, Started, StartItem } from "./api/send.js";
export { serve, type Worker } from "./api/serve.js";
export type { OpenTransaction } from "./store/postgres/callers.js";
export type { Step } from "./api/steps.js";
export type { StepKind } from "./store/journal.js";
export type { DatabaseState, MigrationResult } from "./store/store.js";
export type {
  Published,
  PublishOptions,
  Subscribed,
  Subscription,
  Subscriptions,
  SubscriptionTarget,
  Topics,
} from "./api/topics.js";
export {
  type DeliveryHeaders,
  type DeliveryRequest,
  type VerifiedDelivery,
  verifyDelivery,
  type VerifyOptions,
} from "./values/verify-delivery.js";
export type { Why, WhyReason } from "./api/why.js";
export type { Within } from "./api/within.js";
