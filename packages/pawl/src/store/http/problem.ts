/**
 * Turns the problem documents (RFC 9457) of a server back into the errors of the library, with all
 * their members, so that callers can catch the same errors with both transports.
 */

import { readErrorRecord } from "../../values/error-record.js";
import * as errors from "../../values/errors.js";
import { isObject } from "../../values/options.js";
import { Overloaded, Refused, ServerFault } from "../errors.js";

type Members = Readonly<Partial<Record<string, unknown>>>;

/** The error for an answer with this status. `whose` names the server. */
export function toError(status: number, body: unknown, whose: string): errors.PawlError {
  const members: Members = isObject(body) ? body : {};
  const detail = textOf(members["detail"]) ?? textOf(members["title"]) ?? `status ${status}`;
  const made = fromCode(textOf(members["code"]) ?? "", detail, members);
  if (made !== null) return made;
  // The request was wrong in a way for which the library has no error class.
  if (members["code"] === "BadRequest") return new errors.InvalidOption(detail);
  const message = `${whose} answered with status ${status}: ${detail}`;
  if (status === 429 || members["code"] === "Overloaded") return new Overloaded(message);
  if (status === 500) return new ServerFault(message);
  if (status > 500 || status === 408) return new errors.Unavailable(message);
  return new Refused(`${message}. Is that a Pawl server of this version?`);
}

function fromCode(code: string, detail: string, members: Members): errors.PawlError | null {
  switch (code) {
    case "NotSerializable": {
      const path = textOf(members["path"]) ?? "value";
      return new errors.NotSerializable(
        path,
        detail.startsWith(`${path} `) ? detail.slice(path.length + 1) : detail,
      );
    }
    case "RunFailed":
      return new errors.RunFailed(textOf(members["runId"]) ?? "", readErrorRecord(members["error"], detail));
    case "RunCancelled":
      return new errors.RunCancelled(textOf(members["runId"]) ?? "", textOf(members["reason"]));
    case "StepFailed":
      return new errors.StepFailed(textOf(members["step"]) ?? "", readErrorRecord(members["error"], detail));
    case "WorkflowVersionMismatch": {
      const { expected, got } = members;
      return new errors.WorkflowVersionMismatch(detail, {
        expected: typeof expected === "number" ? expected : null,
        got: Number(got),
      });
    }
    default: {
      const plain = plainErrors.get(code);
      return plain === undefined ? null : new plain(detail);
    }
  }
}

/** Errors that have only a message. */
const plainErrors: ReadonlyMap<string, new (message: string) => errors.PawlError> = new Map(
  Object.entries({
    Forbidden: errors.Forbidden,
    InboxFull: errors.InboxFull,
    InvalidInput: errors.InvalidInput,
    InvalidOption: errors.InvalidOption,
    InvalidOutcome: errors.InvalidOutcome,
    InvalidState: errors.InvalidState,
    KeyConflict: errors.KeyConflict,
    NondeterministicWorkflow: errors.NondeterministicWorkflow,
    NonRetryable: errors.NonRetryable,
    NotSupported: errors.NotSupported,
    OperationNotFound: errors.OperationNotFound,
    PayloadTooLarge: errors.PayloadTooLarge,
    ResultTimeout: errors.ResultTimeout,
    RunActive: errors.RunActive,
    RunEnded: errors.RunEnded,
    RunNotFound: errors.RunNotFound,
    SchemaNotStable: errors.SchemaNotStable,
    StepTimeout: errors.StepTimeout,
    TooManyCrashes: errors.TooManyCrashes,
    Unauthorized: errors.Unauthorized,
    Unavailable: errors.Unavailable,
  }),
);

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
