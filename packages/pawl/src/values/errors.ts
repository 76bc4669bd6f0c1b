/**
 * The errors that Pawl throws. Each class has a stable string `code`, the same in the library and
 * over REST. Its name equals its code, so logs, stored records and `instanceof` use one word.
 * Expected races are return values, never errors. Thrown by every layer; stored as the records of
 * `error-record.ts`.
 */

import type { ErrorRecord } from "./error-record.js";

/** Every code that a `PawlError` can have. */
export type ErrorCode =
  | "ChildFailed"
  | "DeadlineExceeded"
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
  | "OperationNotFound"
  | "PayloadTooLarge"
  | "ResultTimeout"
  | "RunActive"
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

/**
 * The base class of all errors of Pawl. Test `error.code`, or `instanceof` one of the classes
 * below.
 */
export abstract class PawlError extends Error {
  abstract readonly code: ErrorCode;
}

/** No run has this id. */
export class RunNotFound extends PawlError {
  override readonly code = "RunNotFound";
}

/** No bulk operation has this id. */
export class OperationNotFound extends PawlError {
  override readonly code = "OperationNotFound";
}

/** The run has not ended, and the call needs one that has. */
export class RunActive extends PawlError {
  override readonly code = "RunActive";
}

/** The run has ended, and the call needs one that has not. */
export class RunEnded extends PawlError {
  override readonly code = "RunEnded";
}

/**
 * The inbox of the run is full (10,000 signals). The run must consume some before it can get more.
 */
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

/** A schema refuses or changes its own output. */
export class SchemaNotStable extends PawlError {
  override readonly code = "SchemaNotStable";
}

/** A value is larger, as JSON, than the limit. */
export class PayloadTooLarge extends PawlError {
  override readonly code = "PayloadTooLarge";
}

/** JSON cannot represent a value unchanged. `path` names the part. */
export class NotSerializable extends PawlError {
  override readonly code = "NotSerializable";
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`${path} ${problem}`, options);
    this.path = path;
  }
}

/** The awaited run failed. `error` is the recorded error, and also the `cause`. */
export class RunFailed extends PawlError {
  override readonly code = "RunFailed";
  readonly runId: string;
  readonly error: ErrorRecord;

  constructor(runId: string, error: ErrorRecord) {
    super(
      `run ${runId} failed${error.step === undefined ? "" : ` at step "${error.step}"`}: ${error.message}`,
      { cause: error },
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

/**
 * The run did not end within its `timeout`. The reason of `ctx.signal`, and the code of the recorded
 * error.
 */
export class DeadlineExceeded extends PawlError {
  override readonly code = "DeadlineExceeded";
  readonly runId: string;

  constructor(runId: string) {
    super(`run ${runId} did not end within its timeout`);
    this.runId = runId;
  }
}

/** The awaited run did not end within the timeout. The run continues. */
export class ResultTimeout extends PawlError {
  override readonly code = "ResultTimeout";
}

/**
 * Throw this to fail the run at once, without further attempts. An error as the reason becomes the
 * cause.
 */
export class NonRetryable extends PawlError {
  override readonly code = "NonRetryable";

  constructor(reason: string | Error, options?: ErrorOptions) {
    if (typeof reason === "string") super(reason, options);
    else super(reason.message, { cause: reason, ...options });
  }
}

/**
 * A step of a workflow used up its attempts. `error` is the recorded error, the same on every
 * replay.
 */
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

/**
 * A run that a workflow invoked did not complete. `error` is its recorded error, if there is one.
 */
export class ChildFailed extends PawlError {
  override readonly code = "ChildFailed";
  readonly step: string;
  /** The invoked run, or the run that holds its key; null if the database refused to start one. */
  readonly runId: string | null;
  readonly error: ErrorRecord | null;

  constructor(step: string, runId: string | null, reason: string, error: ErrorRecord | null) {
    super(`step "${step}": ${reason}`, error === null ? undefined : { cause: error });
    this.step = step;
    this.runId = runId;
    this.error = error;
  }
}

/**
 * A replayed workflow does not call the steps that its run has recorded. See docs/determinism.md.
 */
export class NondeterministicWorkflow extends PawlError {
  override readonly code = "NondeterministicWorkflow";
}

/** Workers died too often while they executed this run. */
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
  /** The highest version that the worker serves; null if it serves none of this name. */
  readonly expected: number | null;
  /** The version of the run. */
  readonly got: number;

  constructor(message: string, { expected, got }: { expected: number | null; got: number }) {
    super(message);
    this.expected = expected;
    this.got = got;
  }
}

/** This transport, or this database, does not support the call. */
export class NotSupported extends PawlError {
  override readonly code = "NotSupported";
}

/** The database is unreachable, or has no schema that this version can use. */
export class Unavailable extends PawlError {
  override readonly code = "Unavailable";
  /**
   * Host, port and name of the database, for operators. Not in the message, which may reach
   * callers.
   */
  declare readonly database?: string;

  constructor(message: string, { database, ...options }: ErrorOptions & { readonly database?: string } = {}) {
    super(message, options);
    if (database !== undefined) this.database = database;
  }
}

/** The request has no bearer token, or the server does not know it. */
export class Unauthorized extends PawlError {
  override readonly code = "Unauthorized";
}

/** The server knows the bearer token, but it lacks the scope or prefix that the call needs. */
export class Forbidden extends PawlError {
  override readonly code = "Forbidden";
}

/** A request is not a valid delivery. `reason` says why. */
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
  DeadlineExceeded,
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
  OperationNotFound,
  PayloadTooLarge,
  ResultTimeout,
  RunActive,
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

// On the prototype, because V8 writes the first line of the stack before any field of the instance
// exists; as a literal, because minifiers rename classes.
for (const [name, { prototype }] of Object.entries(classes)) {
  Object.defineProperty(prototype, "name", { value: name, configurable: true, writable: true });
}
