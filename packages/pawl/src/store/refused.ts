/** What waiting will not mend, apart from an outage, which it will: for the loops that never give up. */

import { Forbidden, Unauthorized, Unavailable } from "../values/errors.js";

/** The database or the server says no: no schema, no access, no such database, a wrong call. */
export class Refused extends Unavailable {}

/** The server has more to do than it takes at a time: nothing of the call was done, and it may be sent again a little later. */
export class Overloaded extends Unavailable {}

/** A fault of the server that nobody foresaw. Workers live through it; a client's call is not sent again by itself. */
export class ServerFault extends Unavailable {}

/** Whether an error means that the runs could not be reached, and may be again later. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Unavailable && !(error instanceof Refused);
}

/**
 * Whether an error concerns the call as a whole, and says nothing about the run that it was made
 * for: an outage, a login that is refused, a right that is missing. Whoever serves a run repeats
 * the call, at a bounded pace, for as long as the claim holds.
 */
export function concernsCall(error: unknown): boolean {
  return error instanceof Unavailable || error instanceof Unauthorized || error instanceof Forbidden;
}
