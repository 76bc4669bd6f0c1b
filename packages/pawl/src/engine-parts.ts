/**
 * `pawl/engine`: the parts that the server is built of, beside the public API. For tools that carry runs over another way; may
 * change with every release.
 */

export { newRun } from "./engine/new-run.js";
export { type Hub, hubOf, type LocalWorker } from "./engine/nudge.js";
export { Sweeper } from "./engine/sweeper.js";
export { locateSchema } from "./locate.js";
export { copyWarning, heldWarning } from "./engine/database-warnings.js";
export { addressKey, withoutPassword } from "./store/postgres/database.js";
export { isPooled } from "./store/postgres/maintenance.js";
export { isOutage } from "./store/postgres/database-errors.js";
export { PostgresStore } from "./store/postgres/postgres-store.js";
export type * from "./store/journal.js";
export type * from "./store/store.js";
