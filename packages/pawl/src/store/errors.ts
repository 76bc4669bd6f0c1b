/**
 * Errors of calls to the store, by what a retry can do about them. Used by the loops that retry
 * forever.
 */

import { Forbidden, Unauthorized, Unavailable } from "../values/errors.js";

/**
 * The database or the server refused the call: no schema, no access, no such database, wrong
 * arguments.
 */
export class Refused extends Unavailable {}

/** The server is overloaded and did nothing. Send the call again a little later. */
export class Overloaded extends Unavailable {}

/** An unexpected error of the server. Workers retry; a client does not repeat its call. */
export class ServerFault extends Unavailable {}

/** Whether the database or server could not be reached. A retry may help later. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Unavailable && !(error instanceof Refused);
}

/**
 * Whether an error concerns the call as a whole and not the run: an outage, a refused login, a
 * missing right. A worker repeats the call, with a delay, for as long as it holds the claim.
 */
export function concernsCall(error: unknown): boolean {
  return error instanceof Unavailable || error instanceof Unauthorized || error instanceof Forbidden;
}
