/**
 * `database` of `pawl/engine`: finds a database and reads its health. Used by the `pawl` command.
 */

export { givenUrl, locate } from "../api/locate.js";
export { describeAddress, withoutPassword } from "../store/postgres/database.js";
export { readSchemaHealth, readServerHealth, requireSchema } from "../store/postgres/health.js";
export { findPooling } from "../store/postgres/pooler.js";
