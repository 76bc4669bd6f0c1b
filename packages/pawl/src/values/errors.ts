/**
 * The errors that Pawl throws. Each class has a stable string `code`, the same in the library and over REST, and
 * its name is that code, so that a log line, a record in the database and an `instanceof` all speak of one thing.
 * Expected races are return values and never errors. Thrown by every layer; written to the database as the
 * records of `error-record.ts`.
 */

import type { ErrorRecord } from "./error-record.js";

/** Every code that a `PawlError` can have. */
export type ErrorCode =
  | "ChildFailed"
  | "Forbidden"
  | "InboxFull"
  | "InvalidDelivery"
  | "InvalidInput"
  | "InvalidOption"
  | "InvalidOutcome"
  | "InvalidState"
  | "KeyConflict"
  | "NondeterministicWorkflow"
  | "NonRetryable"
  | "NotSerializable"
  | "NotSupported"
  | "PayloadTooLarge"
  | "ResultTimeout"
  | "RunCancelled"
  | "RunEnded"
  | "RunFailed"
  | "RunNotFound"
  | "SchemaNotStable"
  | "StepFailed"
  | "StepTimeout"
  | "TooManyCrashes"
  | "Unauthorized"
  | "Unavailable"
  | "WorkflowVersionMismatch";

/** What all errors of Pawl have in common: test `error.code`, or `instanceof` one of the classes below. */
export abstract class PawlError extends Error {
  abstract readonly code: ErrorCode;
}

/** No run has this id. */
export class RunNotFound extends PawlError {
  override readonly code = "RunNotFound";
}

/** The run is terminal, and what was asked needs one that is not. */
export class RunEnded extends PawlError {
  override readonly code = "RunEnded";
}

/** The inbox of the run holds 10,000 signals already: it has to await some of them before it can get more. */
export class InboxFull extends PawlError {
  override readonly code = "InboxFull";
}

/** The unique key and the idempotency key of one start belong to different runs. */
export class KeyConflict extends PawlError {
  override readonly code = "KeyConflict";
}

/** The schema of a definition refuses the input of a run. */
export class InvalidInput extends PawlError {
  override readonly code = "InvalidInput";
}

/** The schema of a definition refuses a stored state. */
export class InvalidState extends PawlError {
  override readonly code = "InvalidState";
}

/** An option or argument is unknown, of the wrong type or out of range. */
export class InvalidOption extends PawlError {
  override readonly code = "InvalidOption";
}

/** A step returned something that is not an outcome, or an outcome that cannot be carried out. */
export class InvalidOutcome extends PawlError {
  override readonly code = "InvalidOutcome";
}

/** A schema refuses, or changes once more, what it gave out itself. */
export class SchemaNotStable extends PawlError {
  override readonly code = "SchemaNotStable";
}

/** A value is longer, as JSON, than the limit. */
export class PayloadTooLarge extends PawlError {
  override readonly code = "PayloadTooLarge";
}

/** JSON cannot carry a value unchanged; `path` says which part of it. */
export class NotSerializable extends PawlError {
  override readonly code = "NotSerializable";
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`${path} ${problem}`, options);
    this.path = path;
  }
}

/** The awaited run failed; `error` is what was recorded. */
export class RunFailed extends PawlError {
  override readonly code = "RunFailed";
  readonly runId: string;
  readonly error: ErrorRecord;

  constructor(runId: string, error: ErrorRecord) {
    super(
      `run ${runId} failed${error.step === undefined ? "" : ` at step "${error.step}"`}: ${error.message}`,
    );
    this.runId = runId;
    this.error = error;
  }
}

/** The awaited run was cancelled. */
export class RunCancelled extends PawlError {
  override readonly code = "RunCancelled";
  readonly runId: string;
  readonly reason: string | undefined;

  constructor(runId: string, reason?: string) {
    super(reason === undefined ? `run ${runId} was cancelled` : `run ${runId} was cancelled: ${reason}`);
    this.runId = runId;
    this.reason = reason;
  }
}

/** The awaited run did not end in the time given; it goes on. */
export class ResultTimeout extends PawlError {
  override readonly code = "ResultTimeout";
}

/** Thrown by users: the run fails at once, whatever attempts are left. An error as the reason becomes the cause. */
export class NonRetryable extends PawlError {
  override readonly code = "NonRetryable";

  constructor(reason: string | Error, options?: ErrorOptions) {
    if (typeof reason === "string") super(reason, options);
    else super(reason.message, { cause: reason, ...options });
  }
}

/** A step of a workflow has failed for good; `error` is what was recorded, the same on every replay. */
export class StepFailed extends PawlError {
  override readonly code = "StepFailed";
  readonly step: string;
  readonly error: ErrorRecord;

  constructor(step: string, error: ErrorRecord) {
    super(`step "${step}" failed: ${error.message}`, { cause: error });
    this.step = step;
    this.error = error;
  }
}

/** A run that a workflow has invoked did not complete; `error` is what was recorded of it, if anything was. */
export class ChildFailed extends PawlError {
  override readonly code = "ChildFailed";
  readonly step: string;
  /** The run that was invoked, or that holds its key; null if the database refused to start one. */
  readonly runId: string | null;
  readonly error: ErrorRecord | null;

  constructor(step: string, runId: string | null, reason: string, error: ErrorRecord | null) {
    super(`step "${step}": ${reason}`, error === null ? undefined : { cause: error });
    this.step = step;
    this.runId = runId;
    this.error = error;
  }
}

/** The body of a workflow does not call the steps that its run has recorded: its code was changed, or depends on chance. */
export class NondeterministicWorkflow extends PawlError {
  override readonly code = "NondeterministicWorkflow";
}

/** The worker died too often while it executed this run. */
export class TooManyCrashes extends PawlError {
  override readonly code = "TooManyCrashes";
}

/** A step or job ran longer than the worker's `maxStepDuration`. */
export class StepTimeout extends PawlError {
  override readonly code = "StepTimeout";
}

/** A worker was handed a version of a definition that it does not serve. */
export class WorkflowVersionMismatch extends PawlError {
  override readonly code = "WorkflowVersionMismatch";
  /** The version that the worker serves, the highest if there are several; null: none of this name. */
  readonly expected: number | null;
  /** The version of the run. */
  readonly got: number;

  constructor(message: string, { expected, got }: { expected: number | null; got: number }) {
    super(message);
    this.expected = expected;
    this.got = got;
  }
}

/** This transport, or this database, cannot do what was asked. */
export class NotSupported extends PawlError {
  override readonly code = "NotSupported";
}

/** The database cannot be reached, or has no schema that this version can use. */
export class Unavailable extends PawlError {
  override readonly code = "Unavailable";
  /** Host, port and name of the database, for operators. Never in the message: that may reach callers. */
  declare readonly database?: string;

  constructor(message: string, { database, ...options }: ErrorOptions & { readonly database?: string } = {}) {
    super(message, options);
    if (database !== undefined) this.database = database;
  }
}

/** The server does not know the token, or was given none. */
export class Unauthorized extends PawlError {
  override readonly code = "Unauthorized";
}

/** The token is known, and does not have the scope that this takes. */
export class Forbidden extends PawlError {
  override readonly code = "Forbidden";
}

/** A request is no delivery that this secret has signed, or not one of now; `reason` says which. */
export class InvalidDelivery extends PawlError {
  override readonly code = "InvalidDelivery";
  readonly reason: "MissingHeader" | "WrongTime" | "WrongSignature" | "InvalidBody";

  constructor(reason: InvalidDelivery["reason"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const classes: Record<ErrorCode, { readonly prototype: PawlError }> = {
  ChildFailed,
  Forbidden,
  InboxFull,
  InvalidDelivery,
  InvalidInput,
  InvalidOption,
  InvalidOutcome,
  InvalidState,
  KeyConflict,
  NondeterministicWorkflow,
  NonRetryable,
  NotSerializable,
  NotSupported,
  PayloadTooLarge,
  ResultTimeout,
  RunCancelled,
  RunEnded,
  RunFailed,
  RunNotFound,
  SchemaNotStable,
  StepFailed,
  StepTimeout,
  TooManyCrashes,
  Unauthorized,
  Unavailable,
  WorkflowVersionMismatch,
};

// On the prototype, because V8 writes the first line of the stack before any field of the instance exists; as a
// literal, because minifiers rename classes.
for (const [name, { prototype }] of Object.entries(classes)) {
  Object.defineProperty(prototype, "name", { value: name, configurable: true, writable: true });
}
