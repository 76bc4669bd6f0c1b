/**
 * Both `pawl` and `pawl/client` export these names: the errors, and the types of the client. Nothing
 * here imports the Postgres driver or Node.
 */

export type { BrokenRun, Checked } from "./api/check.js";
export type { AnyDefinition, InputOf, Job, Machine, OutputOf, RunId, Workflow } from "./define/definition.js";
export type { Duration } from "./values/duration.js";
export type { ErrorRecord } from "./values/error-record.js";
export * from "./values/errors.js";
export type { Json, Jsonify } from "./values/json-types.js";
export type { Logger, LogMethod } from "./values/logger.js";
export type { Phase, Status } from "./values/phase.js";
export type { ConcurrencyLimit, RateLimit } from "./define/rate-limit.js";
export type { Debounce, StartOptions, Tags } from "./define/start-options.js";
export type { LimitOptions, RateOptions, SlotOptions } from "./local/limits.js";
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
export type { ScheduleTick } from "./define/schedule-key.js";
export type { ScheduledStartOptions, ScheduleOptions, ScheduleTimes } from "./schedules/options.js";
export type { Backfilled, BackfillOptions, Schedules } from "./schedules/schedules.js";
export type { CatchUp, Overlap, Schedule, ScheduleDetail, TickRun } from "./store/schedule-store.js";
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
export type { CorrelationTarget, Signalled, SignalledRuns, Started, StartItem } from "./api/send.js";
export type { Step } from "./api/steps.js";
export type { StepKind } from "./store/journal.js";
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
