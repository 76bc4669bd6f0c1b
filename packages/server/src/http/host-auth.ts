/**
 * Asks the app that mounts the handler what a caller may do: its `authorize` reads a session, a
 * cookie or a header, and answers with scopes. A browser sends cookies with requests of foreign
 * pages too, so those are refused before the app is asked.
 */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { Forbidden, InvalidOption, Unauthorized } from "pawl";
import { values } from "pawl/engine";
import type { Scope } from "./app.js";
import type { HostRights } from "./auth.js";
import { checkPrefixes, checkScope, withIncluded } from "./tokens.js";

/** A caller as the host app knows it. */
export interface HostCaller {
  /** Who this is, for the action log and messages: a user name, or an email address. */
  readonly name: string;
  /** "write" includes read and start; "admin" includes all. */
  readonly scopes: readonly Scope[];
  /** Prefixes of the definitions and limits that the caller reaches. Default: all. */
  readonly names?: readonly string[] | undefined;
  /** Prefixes of the queues that the caller reaches. Default: all. */
  readonly queues?: readonly string[] | undefined;
  /** The caller's address, for the action log. Default: that of the connection. */
  readonly from?: string | undefined;
}

/** Null: the caller is unknown, and gets status 401. */
export type Authorized = HostCaller | null | undefined;

const maxName = 200;

/** The rights of a request that the app has answered about; throws `Unauthorized` for null. */
export async function askHost(
  headers: IncomingMessage["headers"],
  authorize: () => Authorized | Promise<Authorized>,
): Promise<HostRights> {
  refuseForeignPages(headers);
  const caller = await authorize();
  if (caller === null || caller === undefined)
    throw new Unauthorized("the app that serves this does not know you: sign in to it first");
  try {
    return readCaller(caller);
  } catch (error) {
    // The mistake is the app's, not its caller's: status 500, and the log says why.
    throw new Error(`authorize gave a wrong answer: ${(error as Error).message}`, { cause: error });
  }
}

function readCaller(caller: HostCaller): HostRights {
  const { name, scopes, names, queues, from } = caller;
  if (typeof name !== "string" || name === "" || name.length > maxName)
    throw wrong(`a name of 1 to ${maxName} characters, not ${values.show(name)}`);
  if (!Array.isArray(scopes)) throw wrong(`a list of scopes, not ${values.show(scopes)}`);
  if (from !== undefined && typeof from !== "string")
    throw wrong(`an address as text in from, not ${values.show(from)}`);
  return {
    name,
    scopes: withIncluded(scopes.map((scope: unknown) => checkScope(scope, name))),
    names: names === undefined ? null : checkPrefixes(names, "names", name),
    queues: queues === undefined ? null : checkPrefixes(queues, "queues", name),
    from: from?.slice(0, maxName),
  };
}

const wrong = (expected: string): InvalidOption =>
  new InvalidOption(`authorize must answer null, or an object with ${expected}`);

/**
 * Browsers say where a request comes from: in sec-fetch-site, or over plain HTTP in origin alone. A
 * bearer token is never sent by the browser on its own, so its sender means it.
 */
function refuseForeignPages(headers: IncomingHttpHeaders): void {
  const { "sec-fetch-site": site, origin, host, authorization = "" } = headers;
  if (/^bearer /i.test(authorization)) return;
  const isOwn =
    site !== undefined
      ? site === "same-origin" || site === "none"
      : origin === undefined || origin === `https://${host}` || origin === `http://${host}`;
  if (!isOwn) throw new Forbidden("this call comes from a web page of another site");
}
