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
} from "./define/delivery-signature.js";
export { toMilliseconds } from "./define/duration.js";
export { toJson } from "./define/json.js";
export { checkPattern } from "./define/names.js";
export { checkInteger, checkOptions, checkString, isObject, suggest } from "./define/options.js";
export { statusOf } from "./define/phase.js";
export { show } from "./define/show.js";
export { type Emitter, Events } from "./engine/events.js";
export { expositionType } from "./engine/exposition.js";
export { Gauges } from "./engine/gauges.js";
export { Metrics } from "./engine/metrics.js";
export { setLimit } from "./engine/limits.js";
export { LowWater } from "./engine/low-water.js";
export { newRun } from "./engine/new-run.js";
export { Patience } from "./engine/patience.js";
export { Hub, hubOf, type LocalWorker } from "./engine/nudge.js";
export { checkLogger, checkMaxPayload, checkSchemaName, checkServe } from "./engine/serve-options.js";
export { checkTraceparent } from "./engine/tracing.js";
export { LockLanes } from "./engine/lanes.js";
export { Lanes } from "./store/http/lanes.js";
export { Starter } from "./engine/start.js";
export { Sweeper } from "./engine/sweeper.js";
export { EngineWorker } from "./engine/worker.js";
export { copyWarning, heldWarning } from "./engine/database-warnings.js";
export { givenUrl, type Located, locate, locateSchema } from "./locate.js";
export { Results } from "./results.js";
export { toStarted } from "./sender.js";
export { stepsPage } from "./steps.js";
export { subscribe } from "./topics.js";
export { addressKey, checkUrl, describeAddress, withoutPassword } from "./store/postgres/database.js";
export { isBusy, isOutage, isPassing, isValueFault, sqlState } from "./store/postgres/database-errors.js";
export { isUnreachable } from "./store/refused.js";
export { readSchemaHealth, readServerHealth, requireSchema } from "./store/postgres/health.js";
export { findPooling } from "./store/postgres/pooler.js";
export { PostgresStore } from "./store/postgres/postgres-store.js";
export type { BeatAnswer } from "./store/beats.js";
export type * from "./store/health.js";
export type * from "./store/journal.js";
export type * from "./store/queue-store.js";
export type * from "./store/store.js";
