/**
 * Classifies database errors: retry at once, wait for the database to come back, or give up and say
 * what to do. The store and the migrations use `explain` to turn every driver error into one of
 * Pawl's. The engine's loops ask `isOutage` whether waiting can help.
 */

import pg from "../driver/driver.js";
import { PawlError, Unavailable } from "../../values/errors.js";
import { isUnreachable, Refused } from "../errors.js";
import { placeOf } from "../driver/source.js";
import type { DatabaseSource } from "../driver/source-types.js";
import { explainTls } from "../driver/tls.js";
import { type Address, describeAddress } from "./database.js";

/** Returns the SQLSTATE of an error that came from the server. */
export function sqlState(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return error.code;
  // A user's own pool may bring another copy of the driver.
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether retrying the same call at once may help: a deadlock or a serialization failure. */
export function isRetryable(error: unknown): boolean {
  const code = sqlState(error);
  return code === "40P01" || code === "40001";
}

/**
 * Whether the connection lacks the prepared statement, as happens behind a pooler. The server
 * executed nothing.
 */
export function isUnprepared(error: unknown): boolean {
  const code = sqlState(error);
  return code === "26000" || code === "42P05";
}

/**
 * Whether a prepared statement may refer to a function that a migration has replaced since. The
 * server wrote nothing, and the same statement works when sent whole.
 */
export function isOutdated(error: unknown): boolean {
  const code = sqlState(error);
  return code === "0A000" || code === "42883";
}

/**
 * Whether the database, rather than this call, is at fault. The causes are no connection (08),
 * shutdown and recovery (57P), read only after a failover (25006), and I/O errors (58). The
 * database may also be out of connections, disk or memory (53), or not answer at all.
 */
export function isOutage(error: unknown): boolean {
  if (error instanceof PawlError) return isUnreachable(error);
  const code = sqlState(error);
  return code === undefined || /^(08|57P|53|58|25006)/.test(code);
}

/**
 * Whether user code caused an error at the commit of a transaction it wrote in. Only its own
 * deferred constraints and triggers run at commit. The server causes every other error: no answer,
 * a conflict with others (40), a lock (55), the session itself (25, 28).
 */
export function isUsersAtCommit(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && !isOutage(error) && !/^(25|28|40|55|XX)/.test(code);
}

/**
 * Whether the database cannot accept a value of the call: it is out of range, malformed, or
 * violates a constraint.
 */
export function isValueFault(error: unknown): boolean {
  return error instanceof Refused && /^(22|23|54)/.test(sqlState(error.cause) ?? "");
}

/**
 * Whether the database refused because of concurrent work: a rollback (40), a lock or an object in
 * use (55), or a cancelled statement (57). The call wrote nothing, and the same call may work
 * later.
 */
export function isPassing(error: unknown): boolean {
  return error instanceof Refused && /^(40|55|57)/.test(sqlState(error.cause) ?? "");
}

/** Whether a row that the call read may be at fault: its values, a constraint, or damage. */
export function isRowFault(error: unknown): boolean {
  return (
    error instanceof Refused &&
    /^(?:21|22|23|27|44|54|PW)|^(?:P0001|XX001|XX002)$/.test(sqlState(error.cause) ?? "")
  );
}

/**
 * Whether the call could not get a lock in time. It wrote nothing, and retrying later will help.
 */
export function isBusy(error: unknown): boolean {
  return error instanceof Refused && sqlState(error.cause) === "55P03";
}

/**
 * Turns an error into the one that users see. The message does not reveal the database's address,
 * because it may reach a server's callers and readers of run errors.
 */
export function explain(error: unknown, { url, schema }: Address): PawlError {
  if (error instanceof PawlError) return error;
  const options = { cause: error, database: describeAddress(url) };
  const tls = explainTls(error);
  if (tls !== null) return new Unavailable(`the database cannot be used: ${tls}`, options);
  const message = withoutAddress(error, url) || "no connection";
  // The statement took too long: the database has no time for it now.
  if (isOutage(error) || sqlState(error) === "57014") {
    return new Unavailable(`the database cannot be used: ${message}${outageAdvice(error)}`, options);
  }
  return new Refused(`the database refused: ${message}${advice(sqlState(error) ?? "", schema)}`, options);
}

/** Returns the driver's or the server's message without hosts, ports, roles and database names. */
function withoutAddress(error: unknown, url: DatabaseSource): string {
  if (!(error instanceof Error)) return "";
  const { code, syscall } = error as NodeJS.ErrnoException;
  // A network error: its message ends with the address or with the certificate's name.
  if (sqlState(error) === undefined && typeof code === "string") {
    return [...(syscall === undefined ? [] : [syscall]), code].join(" ");
  }
  const place = placeOf(url);
  const names = new Set([place?.database, place?.user]);
  // During connecting, a server or a pooler names hosts, roles and databases, including those of
  // others.
  const isConnecting = /^(08|28|3D|53300)/.test(sqlState(error) ?? "");
  return error.message.replaceAll(
    /\b(database|role|user|host):? (?:"([^"]*)"|([^\s",]+))/g,
    (text, what: string, quoted?: string, plain?: string) =>
      (isConnecting && quoted !== undefined) || names.has(quoted ?? plain) ? `the ${what} of the URL` : text,
  );
}

/**
 * Says what to check during an outage. Workers keep retrying by themselves; callers may repeat a
 * call.
 */
function outageAdvice(error: unknown): string {
  const code = sqlState(error);
  if (code === "53300") {
    return ". It has no connections left: raise its max_connections, lower the option pool, or put a pooler before it";
  }
  if (code === "53100") return ". Its disk is full: free some space, and it goes on";
  if (code === "25006") {
    return ". It takes no writes, as a standby does: check that the URL leads to the primary";
  }
  if (code?.startsWith("57P") === true)
    return ". It is starting or shutting down: repeat the call when it is up";
  if (code === "57014") {
    return ". It took too long, or somebody cancelled it. Nothing was written: repeat it later, or ask for less at a time";
  }
  const check = ". Check that it is running, and that host and port of the URL can be reached from here";
  if (wasNeverReached(error)) return `${check}. The call was not executed`;
  return `${check}. Whether the call was executed is not known: repeat it with an idempotencyKey or a dedupKey`;
}

/** Whether the driver had no connection on which to send anything. */
function wasNeverReached(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN";
}

/** Says how to fix a server error with this SQLSTATE. The text follows the server's message. */
export function advice(code: string, schema: string): string {
  if (["3F000", "42P01", "42883"].includes(code)) {
    return `. The schema "${schema}" of Pawl is missing or older than this release: run ${migrateCall(schema)} once`;
  }
  if (code.startsWith("28")) return ". Check user and password of the URL, and pg_hba.conf of the server";
  if (code === "3D000") return ". Create the database first, or correct its name in the URL";
  if (code === "42501") {
    const call = migrateCall(schema, 'grant: "<role>"');
    const option = schema === "pawl" ? "" : ` --schema ${schema}`;
    return (
      `. To let a role use the schema "${schema}" without owning it, run ${call}, or the command ` +
      `pawl migrate${option} --grant "<role>", with the URL of the role that owns the schema`
    );
  }
  return ` (SQLSTATE ${code})`;
}

/** Returns the call with which a user brings the schema up to date. */
export function migrateCall(schema: string, ...more: string[]): string {
  const options = schema === "pawl" ? more : [`schema: ${JSON.stringify(schema)}`, ...more];
  return `migrate({ ${["url", ...options].join(", ")} })`;
}
