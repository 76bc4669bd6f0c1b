/**
 * The error class of this package, and the translation of PostgreSQL's and the system's errors into
 * it. Every message says what failed and how to fix it. Failures of the server include the end of
 * its log.
 */

export type LocalPostgresErrorCode =
  | "UnsupportedPlatform"
  | "PortTaken"
  | "DiskFull"
  | "NoPasswdEntry"
  | "InvalidOption"
  | "StartFailed";

export class LocalPostgresError extends Error {
  readonly code: LocalPostgresErrorCode;

  constructor(code: LocalPostgresErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "LocalPostgresError";
    this.code = code;
  }
}

/** The form in which an error travels from the supervisor to a user process. */
export interface ErrorMessage {
  code: LocalPostgresErrorCode;
  message: string;
}

export function toErrorMessage(error: unknown): ErrorMessage {
  const known = toLocalPostgresError(error, "the local Postgres could not be started");
  return { code: known.code, message: known.message };
}

/**
 * Names the failures of system calls that a reader can act on; all others become `StartFailed` with
 * their cause.
 */
export function toLocalPostgresError(error: unknown, what: string): LocalPostgresError {
  if (error instanceof LocalPostgresError) return error;
  const systemCode = systemCodeOf(error);
  const detail = error instanceof Error ? error.message : String(error);
  if (systemCode === "ENOSPC" || systemCode === "EDQUOT") {
    return new LocalPostgresError("DiskFull", `${what}: ${diskFullAdvice}\n${detail}`, { cause: error });
  }
  return new LocalPostgresError("StartFailed", `${what}: ${detail}`, { cause: error });
}

const diskFullAdvice =
  "the disk is full (or the quota is used up). Free some space (a new data directory needs about 40 MB), " +
  "or choose another place with the `directory` option or the TMPDIR environment variable";

/**
 * Reads the reason out of the output of initdb or postgres. `what` says which of the two failed,
 * and where.
 */
export function diagnoseOutput(what: string, output: string): LocalPostgresError {
  const tail = tailOf(output);
  const because = (code: LocalPostgresErrorCode, advice: string) =>
    new LocalPostgresError(code, `${what}: ${advice}.\nThe end of the Postgres log:\n${tail}`);

  if (/No space left on device|Disk quota exceeded/i.test(output)) return because("DiskFull", diskFullAdvice);
  if (/could not bind IPv4 address "127\.0\.0\.1": Address already in use/i.test(output)) {
    return because(
      "PortTaken",
      'another process listens on this port. Choose another port, ask for any with `port: "free"`, ' +
        "or leave `port` out to use a unix socket",
    );
  }
  const unknownUser = /could not look up (?:effective|local) user ID (\d+)/i.exec(output);
  if (unknownUser) {
    return because(
      "NoPasswdEntry",
      `user id ${unknownUser[1]} has no entry in /etc/passwd, which PostgreSQL's initdb needs. Run as a ` +
        `user that has one (for example \`docker run --user node\`), or add one to the image: ` +
        `echo "app:x:${unknownUser[1]}:${unknownUser[1]}::/tmp:/bin/sh" >> /etc/passwd`,
    );
  }
  if (/could not bind IPv4 address "127\.0\.0\.1": Permission denied/i.test(output)) {
    return because("StartFailed", "this user may not listen on that port; choose one above 1023");
  }
  if (
    /unrecognized configuration parameter|invalid value for parameter|requires a (?:Boolean|numeric) value/i.test(
      output,
    )
  ) {
    return because("InvalidOption", "PostgreSQL refuses one of the `settings`; the log names it");
  }
  return because("StartFailed", "the server did not start; see the log below");
}

/** The last lines of a log: enough to see the reason, little enough to read in a terminal. */
export function tailOf(output: string): string {
  const lines = output.trimEnd().split("\n").slice(-20);
  return lines.join("\n").slice(-4000) || "(empty)";
}

export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
