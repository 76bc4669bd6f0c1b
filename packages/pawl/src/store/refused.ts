/** What waiting will not mend, apart from an outage, which it will: for the loops that never give up. */

import { Unavailable } from "../define/errors.js";

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
