/**
 * The errors for writes that the database refused because of their values: the boundary knows the
 * codes, the engine sees errors of Pawl. Called when an outcome or a step of a workflow is written.
 */

import { Forbidden, InvalidOutcome, InvalidState, KeyConflict, type PawlError } from "../values/errors.js";

/** The reason why a write was refused. The code is a SQLSTATE, or the name of a server's error. */
export interface FailedWrite {
  readonly code: string;
  readonly message: string;
}

/** The database refused an outcome. */
export function failedOutcome({ code, message }: FailedWrite): PawlError {
  switch (code) {
    // Keys of a child that belong to two runs.
    case "PW409":
      return new KeyConflict(message);
    // A rate limit that nobody has set.
    case "PW422":
      return new InvalidOutcome(message);
    // A child that the token of this worker may not start.
    case "Forbidden":
      return new Forbidden(message);
    default:
      return new InvalidState(`the database refused the outcome (${code}): ${message}`);
  }
}

/**
 * The database refused the entry of a step, or the server a child that the worker's token may not
 * start.
 */
export function failedStep({ code, message }: FailedWrite): PawlError {
  if (code === "Forbidden") return new Forbidden(message);
  return new InvalidOutcome(`the database refused it (${code}): ${message}`);
}

/**
 * An error that the database raised at the commit of a user's transaction, such as a deferred
 * constraint.
 */
export function failedWriteOf(error: unknown): FailedWrite {
  const { code = "", message } = error as { code?: string; message: string };
  return { code, message };
}
