export { connect, type ConnectOptions } from "./connect.js";
export type { BrokenRun, Checked } from "./check.js";
export { child, type Child } from "./define/child.js";
export type { ChildRun, JobContext, StepContext } from "./define/context.js";
export type { AnyDefinition, InputOf, Job, Machine, OutputOf, RunId, Workflow } from "./define/definition.js";
export type { Duration } from "./define/duration.js";
export type { ErrorRecord } from "./define/error-record.js";
export * from "./define/errors.js";
export { job, type JobOptions } from "./define/job.js";
export type { Json, Jsonify } from "./define/json-types.js";
export type { Logger, LogMethod } from "./define/logger.js";
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
export type { Phase, Status } from "./define/phase.js";
export type { RateLimit } from "./define/rate-limit.js";
export type { Backoff, Retries } from "./define/retry.js";
export { type Schema, type } from "./define/schema.js";
export {
  type ReceivedSignal,
  signal,
  type SignalMap,
  type SignalOptions,
  type SignalType,
} from "./define/signal.js";
export type { StartOptions } from "./define/start-options.js";
export type { Transaction } from "./define/transaction.js";
export { workflow, type WorkflowOptions } from "./define/workflow.js";
export type {
  EventOptions,
  StepOptions,
  StepRun,
  WorkflowContext,
  WorkflowSteps,
} from "./define/workflow-context.js";
export type { EventListener, EventMap, EventName } from "./engine/events.js";
export { fork, type Adopted, type Forked, type ForkOptions } from "./fork.js";
export { databaseState, hold, type DatabaseOptions } from "./hold.js";
export type { LimitOptions } from "./engine/limits.js";
export type { MetricsOptions, ServeOptions } from "./engine/serve-options.js";
export { migrate, type MigrateOptions } from "./migrate.js";
export type { Cancelled, CancelOptions, Limit, Pawl, ResultOptions } from "./pawl.js";
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
} from "./queues.js";
export type { CountOptions, ListOptions, Page, Run } from "./run.js";
export type { Signalled, Started, StartItem } from "./sender.js";
export { serve, type Worker } from "./serve.js";
export type { OpenTransaction } from "./store/postgres/callers.js";
export type { Step } from "./steps.js";
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
} from "./topics.js";
export {
  type DeliveryHeaders,
  type DeliveryRequest,
  type VerifiedDelivery,
  verifyDelivery,
  type VerifyOptions,
} from "./verify-delivery.js";
export type { Why, WhyReason } from "./why.js";
export type { Within } from "./within.js";
