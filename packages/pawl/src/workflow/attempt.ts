/**
 * One attempt at a step of a workflow: calls its function within its time and answers what to
 * record: its result, another attempt, or that it has failed for good. Used by the body, which
 * records it.
 */

import { describeError } from "../values/error-record.js";
import { toJson } from "../values/json.js";
import type { Json } from "../values/json-types.js";
import { backoffMs } from "../define/retry.js";
import type { JournalChange } from "../store/journal.js";
import type { Execution } from "../run/execution.js";
import { isNotRetryable } from "../run/transition.js";
import type { StepCall, Work } from "./step-call.js";
import { AttemptContext } from "./attempt-context.js";
import { isThenable, withinTime } from "../timing/deadline.js";

/** The entry to record, and the value that the body gets. */
export interface Performed {
  readonly entry: Extract<JournalChange, { op: "run" | "transaction" | "retry" }>;
  readonly value: Json | null;
  /** The value that its function threw, if it failed. */
  readonly thrown: unknown;
  /** It failed with an error that another attempt would not change. */
  readonly isNotRetryable: boolean;
}

/**
 * Calls the function of a step, with these arguments before the context of the attempt. Never
 * throws.
 */
export async function perform(
  call: StepCall,
  work: Work,
  { control, services }: Execution,
  ...before: readonly unknown[]
): Promise<Performed> {
  const { attempt } = call;
  const begunMs = performance.now();
  const { maxStepMs, maxPayloadBytes } = services.limits;
  const context = new AttemptContext(control, attempt);
  try {
    const { fn } = work;
    const returned = fn(...before, context);
    const result = isThenable(returned)
      ? await withinTime(returned, maxStepMs, (error) => context.abort(error))
      : returned;
    const { text, value } = toJson(result, `the result of step "${call.name}"`, maxPayloadBytes);
    const tookMs = Math.round(performance.now() - begunMs);
    return {
      entry: { op: workOf(call), attempt, output: text, error: null, tookMs },
      value,
      thrown: null,
      isNotRetryable: false,
    };
  } catch (error) {
    return failed(call, work, error, begunMs);
  } finally {
    context.end();
  }
}

/** The entry for an error: another attempt, or that this was the last. */
export function failed(call: StepCall, { policy }: Work, error: unknown, begunMs: number): Performed {
  const { attempt } = call;
  const record = recordOf(error);
  const isFinal = isNotRetryable(error);
  if (isFinal || attempt + 1 >= policy.attempts) {
    const tookMs = Math.round(performance.now() - begunMs);
    const entry = { op: workOf(call), attempt, output: null, error: record, tookMs };
    return { entry, value: null, thrown: error, isNotRetryable: isFinal };
  }
  const delayMs = backoffMs(policy, attempt, Math.random());
  const entry = { op: "retry", kind: workOf(call), attempt: attempt + 1, error: record, delayMs } as const;
  return { entry, value: null, thrown: error, isNotRetryable: false };
}

/** An error as it is recorded, with its members in the order in which they will be read back. */
export const recordOf = (error: unknown): string => toJson(describeError(error), "error").text;

const workOf = ({ kind }: StepCall): "run" | "transaction" => (kind === "transaction" ? kind : "run");
