/**
 * `pawl`: the public API. Everything that this file does not export may change with every release.
 */

export * from "./exports.js";
export { connect, type ConnectOptions } from "./api/connect.js";
export type { ConnectionOptions, DatabaseSource, PgPool } from "./store/driver/source-types.js";
export { child, type Child } from "./define/child.js";
export type { BatchContext, BatchFailure, BatchItem, BatchOptions } from "./define/batch.js";
export type { ChildRun, JobContext, StepContext } from "./define/context.js";
export { job, type JobOptions } from "./define/job.js";
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
export type { Backoff, Retries } from "./define/retry.js";
export { type Schema, type } from "./define/schema.js";
export {
  type ReceivedSignal,
  signal,
  type SignalMap,
  type SignalOptions,
  type SignalType,
} from "./define/signal.js";
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
export type { DeclaredSchedule, DeclaredSchedules } from "./schedules/declared.js";
export type { MetricsOptions, ServeOptions } from "./worker/options.js";
export { migrate, type MigrateOptions } from "./api/migrate.js";
export { serve, type Worker } from "./api/serve.js";
export { runUntilIdle, type IdleReport, type RunUntilIdleOptions } from "./serverless/run-until-idle.js";
export type { OpenTransaction } from "./store/postgres/callers.js";
export type { DatabaseState, MigrationResult } from "./store/store.js";
export type { Within } from "./api/within.js";
