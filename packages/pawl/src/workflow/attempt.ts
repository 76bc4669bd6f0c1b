/**
 * One attempt at a step of a workflow: calls its function, within its time, and says what to record of it: its result, another attempt,
 * or that it has failed for good. Used by the body, which records it.
 */

import { describeError } from "../values/error-record.js";
import { toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { backoffMs } from "../define/retry.js";
import type { JournalChange } from "../store/journal.js";
import type { Execution } from "../run/execution.js";
import { isHopeless } from "../run/transition.js";
import type { StepCall, Work } from "./step-call.js";
import { StepSignal } from "../run/abort-signal.js";
import type { Surroundings } from "../run/worker-services.js";
import { isThenable, withinTime } from "../timing/deadline.js";

/** What came of it: what to record, and the value that the body gets. */
export interface Performed {
  readonly entry: Extract<JournalChange, { op: "run" | "transaction" | "retry" }>;
  readonly value: Json | null;
  /** It has failed, and no further attempt would mend that. */
  readonly isHopeless: boolean;
}

/** Calls the function of a step with these arguments before what every step gets. Never throws. */
export async function perform(
  call: StepCall,
  work: Work,
  execution: Execution,
  around: Surroundings,
  ...before: readonly unknown[]
): Promise<Performed> {
  const { attempt } = call;
  const begunMs = performance.now();
  const signal = new StepSignal(execution, attempt);
  try {
    const returned = work.fn(...before, signal);
    const result = isThenable(returned)
      ? await withinTime(returned, around.maxStepMs, (error) => signal.abort(error))
      : returned;
    const { text, value } = toJson(result, `the result of step "${call.name}"`, around.maxPayloadBytes);
    const tookMs = Math.round(performance.now() - begunMs);
    return {
      entry: { op: workOf(call), attempt, output: text, error: null, tookMs },
      value,
      isHopeless: false,
    };
  } catch (error) {
    return failed(call, work, error, begunMs);
  } finally {
    signal.end();
  }
}

/** What to record of an error: another attempt, or that this was the last. */
export function failed(call: StepCall, { policy }: Work, error: unknown, begunMs: number): Performed {
  const { attempt } = call;
  const record = recordOf(error);
  const hopeless = isHopeless(error);
  if (hopeless || attempt + 1 >= policy.attempts) {
    const tookMs = Math.round(performance.now() - begunMs);
    const entry = { op: workOf(call), attempt, output: null, error: record, tookMs };
    return { entry, value: null, isHopeless: hopeless };
  }
  const delayMs = backoffMs(policy, attempt, Math.random());
  const entry = { op: "retry", kind: workOf(call), attempt: attempt + 1, error: record, delayMs } as const;
  return { entry, value: null, isHopeless: false };
}

/** An error as it is recorded, with its members in the order in which they will be read back. */
export const recordOf = (error: unknown): string => toJson(describeError(error), "error").text;

const workOf = ({ kind }: StepCall): "run" | "transaction" => (kind === "transaction" ? kind : "run");
