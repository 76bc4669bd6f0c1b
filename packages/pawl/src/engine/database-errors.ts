/** `databaseErrors` of `pawl/engine`: classifies errors of the database. Used by the server. */

export { isOutage, isPassing, isValueFault, sqlState } from "../store/postgres/database-errors.js";
export { isUnreachable } from "../store/errors.js";
