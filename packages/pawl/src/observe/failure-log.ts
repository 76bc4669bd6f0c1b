/**
 * The log line of a failed attempt, a failed step or a failed run: the run, the step, the attempt,
 * and the error with its stack and causes. The only place that logs errors of user code. The line
 * has a record of the error, never the thrown object, whose members may contain a request or a
 * payload. Messages that Pawl itself made of a payload are left out. Called by `run/commit.ts` and
 * the bodies of workflows, after the failure is recorded.
 */

import type { ErrorRecord } from "../values/error-record.js";
import type { Logger } from "../values/logger.js";

/** The run and step that failed. */
export interface Failure {
  readonly runId: string;
  readonly definition: { readonly name: string; readonly version: number };
  /** `run` for a job; null for the body of a workflow. */
  readonly step: string | null;
  /** Counted from 0. */
  readonly attempt: number;
  readonly error: ErrorRecord;
}

const messages = {
  attempt: "pawl: an attempt failed, another will follow",
  step: "pawl: a step failed",
  run: "pawl: a run failed",
};

export function logFailure(logger: Logger, what: keyof typeof messages, failure: Failure): void {
  const { runId, definition, step, attempt, error } = failure;
  logger.warn(
    {
      runId,
      name: definition.name,
      version: definition.version,
      ...(step === null ? {} : { step }),
      attempt,
      code: error.code ?? error.name,
      err: withoutPayloads(error),
    },
    messages[what],
  );
}

/** The messages of these errors may quote an input, a state or a result. */
const quoting = new Set([
  "InvalidInput",
  "InvalidOption",
  "InvalidOutcome",
  "InvalidState",
  "NotSerializable",
  "SchemaNotStable",
]);
const leftOut = "(left out: it may quote a payload; see the error of the run)";
/** The beginnings of such messages that quote nothing. */
const safeStart =
  /^(?:the schema of [\w"[\]. -]{1,300}? (?:threw|is not stable)|[\w"[\]. -]{1,300}? does not match its schema|the database refused (?:it|the outcome) \(\w*\))(?=: )/;
const notAnError = "a value that is not an Error was thrown";

/** The record without texts that may quote a payload, wherever an outer message repeats them. */
function withoutPayloads(error: ErrorRecord): ErrorRecord {
  const unsafe = new Map<string, string>();
  for (let one: ErrorRecord | undefined = error; one !== undefined; one = one.cause) {
    const { code = "", message } = one;
    if (message.startsWith(`${notAnError}: `)) unsafe.set(message, notAnError);
    else if (quoting.has(code) && message !== "") unsafe.set(message, shortened(message));
  }
  return unsafe.size === 0 ? error : replaced(error, unsafe);
}

function shortened(message: string): string {
  const start = safeStart.exec(message)?.[0];
  return start === undefined ? leftOut : `${start} ${leftOut}`;
}

function replaced(record: ErrorRecord, unsafe: ReadonlyMap<string, string>): ErrorRecord {
  const { stack, cause, ...own } = record;
  let { message } = own;
  for (const [text, safe] of unsafe) message = message.replaceAll(text, () => safe);
  // The first line of the stack repeats the message, perhaps cut.
  const isSafe = message === own.message;
  const frames = stack?.slice(stack.indexOf("\n") + 1);
  return {
    ...own,
    message,
    ...(stack === undefined || stack === null ? {} : { stack: isSafe ? stack : `${own.name}\n${frames}` }),
    ...(cause === undefined ? {} : { cause: replaced(cause, unsafe) }),
  };
}
