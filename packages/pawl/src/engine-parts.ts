/**
 * `pawl/engine`: the parts that the server is built of, beside the public API. For tools that carry runs over another way; may
 * change with every release.
 */

export { isDefinition, reserve } from "./define/definition.js";
export {
  deliveryHeaders,
  deliveryKey,
  type SignedDelivery,
  signedPrefix,
  signedTopicPrefix,
} from "./values/delivery-signature.js";
export { toMilliseconds } from "./values/duration.js";
export { toJson } from "./values/json.js";
export { checkPattern } from "./values/names.js";
export { checkInteger, checkOptions, checkString, isObject, suggest } from "./values/options.js";
export { statusOf } from "./values/phase.js";
export { show } from "./values/show.js";
export { type Emitter, Events } from "./observe/events.js";
export { expositionType } from "./observe/exposition.js";
export { Gauges } from "./observe/gauges.js";
export { Metrics } from "./observe/metrics.js";
export { setLimit } from "./local/limits.js";
export { ClaimCursor } from "./worker/claim-cursor.js";
export { newRun } from "./run/new-run.js";
export { type Polled, PollLoop } from "./timing/poll.js";
export { Hub, hubOf, type LocalWorker } from "./local/hub.js";
export { checkLogger, checkMaxPayload, checkSchemaName, checkServe } from "./worker/options.js";
export { checkTraceparent } from "./observe/tracing.js";
export { LockLanes } from "./timing/slow-lanes.js";
export { Lanes } from "./timing/slow-lanes.js";
export { Starter } from "./local/start.js";
export { Sweeper } from "./worker/sweeper.js";
export { EngineWorker } from "./worker/worker.js";
export { copyWarning, heldWarning } from "./worker/database-warnings.js";
export { givenUrl, type Located, locate, locateSchema } from "./api/locate.js";
export { Results } from "./local/results.js";
export { toStarted } from "./api/send.js";
export { stepsPage } from "./api/steps.js";
export { subscribe } from "./api/topics.js";
export { addressKey, checkUrl, describeAddress, withoutPassword } from "./store/postgres/database.js";
export { isBusy, isOutage, isPassing, isValueFault, sqlState } from "./store/postgres/database-errors.js";
export { isUnreachable } from "./store/errors.js";
export { readSchemaHealth, readServerHealth, requireSchema } from "./store/postgres/health.js";
export { findPooling } from "./store/postgres/pooler.js";
export { PostgresStore } from "./store/postgres/postgres-store.js";
export type { BeatAnswer } from "./store/beats.js";
export type * from "./store/health.js";
export type * from "./store/journal.js";
export type * from "./store/queue-store.js";
export type * from "./store/store.js";
