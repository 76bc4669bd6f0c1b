/**
 * Turns errors into problem documents (RFC 9457) with the code of the library's error. Every answer
 * with a status of 400 or more is made here. An unexpected error is answered without details, and
 * logged with them.
 */

import { type ErrorCode, type Logger, PawlError } from "pawl";
import { databaseErrors } from "pawl/engine";

/** A problem document. The members after `instance` are present if the error has them. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  /** The id of the request. */
  readonly instance: string;
  /** The part of the request that is wrong, such as `body.priority`. */
  readonly field?: string;
  readonly runId?: string;
  readonly error?: unknown;
  readonly reason?: string;
  readonly path?: string;
  readonly expected?: number;
  readonly got?: number;
}

export const problemType = "application/problem+json";

const statuses: Record<ErrorCode, number> = {
  ChildFailed: 409,
  DeadlineExceeded: 408,
  Forbidden: 403,
  InboxFull: 413,
  InvalidDelivery: 401,
  InvalidInput: 422,
  InvalidOption: 422,
  InvalidOutcome: 422,
  InvalidState: 422,
  KeyConflict: 409,
  NondeterministicWorkflow: 409,
  NonRetryable: 409,
  NotSerializable: 422,
  NotSupported: 501,
  OperationNotFound: 404,
  PayloadTooLarge: 413,
  ResultTimeout: 408,
  RunActive: 409,
  RunCancelled: 408,
  RunEnded: 409,
  RunFailed: 408,
  RunNotFound: 404,
  SchemaNotStable: 422,
  StepFailed: 409,
  StepTimeout: 409,
  TooManyCrashes: 409,
  Unauthorized: 401,
  Unavailable: 503,
  WorkflowVersionMismatch: 409,
};

/** The codes of the server itself, beside those of the library. */
export type RequestCode =
  | "BadRequest"
  | "Internal"
  | "MethodNotAllowed"
  | "Overloaded"
  | "RequestTimeout"
  | "RouteNotFound"
  | "TooManyRequests"
  | "UnsupportedMediaType";

/** An error of a request that the library does not know. */
export class RequestError extends Error {
  readonly status: number;
  readonly code: RequestCode | ErrorCode;
  readonly field: string | undefined;

  constructor(status: number, code: RequestCode | ErrorCode, message: string, field?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** The problem document of an error. Logs it unless it is the caller's mistake. */
export function toProblem(error: unknown, requestId: string, logger: Logger): Problem {
  if (error instanceof RequestError) {
    const { status, code, message, field } = error;
    return { ...problem(status, code, message, requestId), ...(field === undefined ? {} : { field }) };
  }
  if (error instanceof PawlError) {
    const status = statuses[error.code];
    if (databaseErrors.isValueFault(error)) {
      const detail = `the database cannot store a value of this request: ${(error.cause as Error).message}`;
      return problem(statuses.InvalidOption, "InvalidOption", detail, requestId);
    }
    if (databaseErrors.isUnreachable(error) || databaseErrors.isPassing(error)) {
      // Its message names the database, which callers should not see.
      logger.warn({ err: error, requestId }, "pawl: a request failed because the database is not available");
      const detail =
        "the database cannot be used at the moment, and it is unknown whether this call was carried out: retry it with the same idempotency key";
      return problem(status, error.code, detail, requestId);
    }
    if (error.code === "Unavailable") return fault(error, requestId, logger);
    return { ...problem(status, error.code, error.message, requestId), ...members(error) };
  }
  const { statusCode, code = "" } = (error ?? {}) as { statusCode?: unknown; code?: string };
  const known = frameworkErrors[code];
  if (known !== undefined) return problem(known.status, known.code, known.detail, requestId);
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500) {
    return problem(statusCode, "BadRequest", (error as Error).message, requestId);
  }
  return fault(error, requestId, logger);
}

/**
 * An unexpected error: a retry would not help. An error of the database is logged without its row.
 */
function fault(error: unknown, requestId: string, logger: Logger): Problem {
  const { cause } = (error ?? {}) as { cause?: unknown };
  const state = databaseErrors.sqlState(cause) ?? databaseErrors.sqlState(error);
  const details =
    state === undefined ? { err: error } : { sqlState: state, reason: (error as Error).message };
  logger.error({ ...details, requestId }, "pawl: a request failed");
  const detail = "an unexpected error occurred in the server; its log has the details under this request id";
  return problem(500, "Internal", detail, requestId);
}

export function problem(status: number, code: string, detail: string, instance: string): Problem {
  return { type: `urn:pawl:error:${code}`, title: titleOf(code), status, detail, code, instance };
}

/** The members from which a client rebuilds the error. */
function members(error: PawlError): Partial<Problem> {
  const { runId, error: recorded, reason, path, expected, got } = error as PawlError & Partial<Problem>;
  return {
    ...(typeof runId === "string" ? { runId } : {}),
    ...(recorded === undefined ? {} : { error: recorded }),
    ...(typeof reason === "string" ? { reason } : {}),
    ...(typeof path === "string" ? { path } : {}),
    ...(typeof expected === "number" ? { expected } : {}),
    ...(typeof got === "number" ? { got } : {}),
  };
}

const frameworkErrors: Readonly<
  Record<string, { status: number; code: RequestCode | ErrorCode; detail: string }>
> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    status: 413,
    code: "PayloadTooLarge",
    detail: "the body is larger than this call allows; store the data elsewhere and pass a reference",
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    status: 415,
    code: "UnsupportedMediaType",
    detail: "the body must be JSON: send the header content-type: application/json",
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    status: 400,
    code: "BadRequest",
    detail: "the length of the body differs from the header content-length",
  },
  FST_ERR_BAD_URL: {
    status: 400,
    code: "BadRequest",
    detail: "the path of the URL is not percent-encoded correctly",
  },
  FST_ERR_MAX_PARAM_LENGTH: {
    status: 414,
    code: "BadRequest",
    detail: "a part of the path is too long",
  },
};

/** "RunNotFound" as "Run not found". */
function titleOf(code: string): string {
  return code.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
