/**
 * The public surface of `@pawl/local-postgres`: one function that starts (or joins) a real
 * PostgreSQL server, the handle it returns, and the one error class it throws.
 */
export { LocalPostgresError, type LocalPostgresErrorCode } from "./errors.js";
export type { LocalPostgresOptions } from "./options.js";
export { startLocalPostgres, type LocalPostgres } from "./start.js";
