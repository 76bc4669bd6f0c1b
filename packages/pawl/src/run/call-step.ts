/**
 * Calls user code of a job or a machine inside the span of its step, and ends its wait after
 * `maxStepDuration`. Called by the functions that execute jobs and machines.
 */

import { isThenable, withinTime } from "../timing/deadline.js";
import type { Execution } from "./execution.js";

/** The returned value, or a promise of it if the code is asynchronous. */
export function callStep({ observed, control, services }: Execution, code: () => unknown): unknown {
  const { stepSpan } = observed;
  const returned = stepSpan === null ? code() : stepSpan.call(code);
  if (!isThenable(returned)) return returned;
  const promised = withinTime(returned, services.limits.maxStepMs, (late) => control.interrupt(late));
  return promised instanceof Promise ? promised : Promise.resolve(promised);
}
