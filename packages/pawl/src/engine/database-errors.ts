/** `databaseErrors` of `pawl/engine`: what an error of the database means. Used by the server. */

export { isOutage, isPassing, isValueFault, sqlState } from "../store/postgres/database-errors.js";
export { isUnreachable } from "../store/refused.js";
