/** What waiting will not mend, apart from an outage, which it will: for the loops that never give up. */

import { Unavailable } from "../define/errors.js";

/** The database or the server says no: no schema, no access, no such database, a wrong call. */
export class Refused extends Unavailable {}

/** Whether an error means that the runs could not be reached, and may be again later. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof Unavailable && !(error instanceof Refused);
}
