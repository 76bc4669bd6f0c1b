/**
 * `pawl/engine`: the parts that the server is built of, beside the public API. For tools that carry runs over another way; may
 * change with every release.
 */

export { isDefinition } from "./define/definition.js";
export { toMilliseconds } from "./define/duration.js";
export { newRun } from "./engine/new-run.js";
export { type Hub, hubOf, type LocalWorker } from "./engine/nudge.js";
export { Sweeper } from "./engine/sweeper.js";
export { copyWarning, heldWarning } from "./engine/database-warnings.js";
export { givenUrl, type Located, locate, locateSchema } from "./locate.js";
export { addressKey, describeAddress, withoutPassword } from "./store/postgres/database.js";
export { isOutage } from "./store/postgres/database-errors.js";
export { readSchemaHealth, readServerHealth, requireSchema } from "./store/postgres/health.js";
export { findPooling } from "./store/postgres/pooler.js";
export { PostgresStore } from "./store/postgres/postgres-store.js";
export type * from "./store/health.js";
export type * from "./store/journal.js";
export type * from "./store/store.js";
