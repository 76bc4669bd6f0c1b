/**
 * Authenticates callers: by a token (`tokens.ts`), by a proxy in front that has checked them, by the
 * app that mounts the handler (`host-auth.ts`), or, without all of these, by being on this machine.
 * `app.ts` asks when it has the headers of a request, before it reads the body. Every request gets
 * its `caller`.
 */

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import { Forbidden, InvalidOption, Unauthorized } from "pawl";
import { values } from "pawl/engine";
import type { Scope } from "./app.js";
import {
  allScopes,
  checkTokens,
  findToken,
  includedIn,
  type Rights,
  tokenForm,
  type Token,
} from "./tokens.js";

/** How callers are authenticated. */
export type AuthMode =
  | { readonly kind: "tokens"; readonly tokens: readonly Token[] }
  | { readonly kind: "proxy" }
  /** The app that mounts the handler says what a caller may do. */
  | { readonly kind: "host"; readonly rightsOf: (raw: IncomingMessage) => Promise<HostRights> }
  | { readonly kind: "loopback" };

/** The rights that the host app gives to a caller. */
export interface HostRights extends Rights {
  /** The caller's address, for the action log; undefined: that of the connection. */
  readonly from: string | undefined;
}

/** The sender of a request and its rights: `request.caller`, set before the handler runs. */
export interface Caller {
  /** The name of the caller's token; null: this server uses no tokens, or the route is open. */
  readonly tokenName: string | null;
  readonly scopes: readonly Scope[];
  /** Whether the token carries prefixes of names or queues. */
  readonly hasPrefixes: boolean;
  /** Those prefixes; null: all names and queues. */
  readonly prefixes: Pick<Token, "names" | "queues"> | null;
  /** The caller's address as the host app knows it. */
  readonly from: string | undefined;
  may(scope: Scope): boolean;
  /** Whether the prefixes of the token allow this. */
  allows(what: Named): boolean;
  /** Throws `Forbidden` unless `allows` does. */
  require(what: Named): void;
}

/**
 * The names that a request concerns. A missing member is not checked. An empty text means all
 * names, which no prefix allows. Null means that the thing has no such name: messages have no
 * definition, limits no queue. A token must then have prefixes of the other kind.
 */
interface Named {
  /** The name of a definition or a limit. */
  readonly name?: string | null;
  readonly queue?: string | null;
}

/** Reads these options. A server that other machines can reach needs tokens or a proxy. */
export function checkAuth(given: {
  readonly tokens: unknown;
  readonly proxyAuth: unknown;
  readonly host: string;
}): AuthMode {
  const { tokens, proxyAuth = false, host } = given;
  if (typeof proxyAuth !== "boolean") {
    throw new InvalidOption(`proxyAuth must be true or false, not ${values.show(proxyAuth)}`);
  }
  if (tokens !== undefined) {
    if (proxyAuth) throw new InvalidOption("tokens and proxyAuth exclude each other: give one of them");
    return { kind: "tokens", tokens: checkTokens(tokens) };
  }
  if (proxyAuth) return { kind: "proxy" };
  if (isLoopback(host)) return { kind: "loopback" };
  throw new InvalidOption(
    `other machines can reach the host ${values.show(host)}, and no option says who may call: give tokens ` +
      `(PAWL_TOKENS, such as ${tokenForm}); or proxyAuth (PAWL_PROXY_AUTH=1) if a proxy in front checks its callers; ` +
      "or listen on 127.0.0.1",
  );
}

/**
 * The same for a handler in an app. Nobody is trusted by being local: behind a proxy every caller
 * seems so. Null: `authorize` decides.
 */
export function checkHandlerAuth(given: {
  readonly tokens?: unknown;
  readonly proxyAuth?: unknown;
  readonly authorize?: unknown;
}): AuthMode | null {
  const { tokens, proxyAuth, authorize } = given;
  if (authorize !== undefined) {
    if (typeof authorize !== "function")
      throw new InvalidOption(`authorize must be a function, not ${values.show(authorize)}`);
    if (tokens !== undefined || proxyAuth === true)
      throw new InvalidOption("authorize excludes tokens and proxyAuth: give one of them");
    return null;
  }
  if (tokens === undefined && proxyAuth !== true) {
    throw new InvalidOption(
      `no option says who may call: give tokens (such as ${tokenForm}); or authorize, a function that ` +
        "answers with a name and scopes; or proxyAuth if a proxy in front checks its callers",
    );
  }
  return checkAuth({ tokens, proxyAuth, host: "" });
}

/**
 * Returns the caller if it has this scope; throws `Unauthorized` or `Forbidden`. Without a scope,
 * anybody who is known may call.
 */
export function authenticate(
  auth: AuthMode,
  raw: IncomingMessage,
  scope: Scope | undefined,
): Caller | Promise<Caller> {
  const { headers } = raw;
  switch (auth.kind) {
    case "tokens":
      return callerOf(withScope(findToken(auth.tokens, headers.authorization), scope), undefined);
    case "host":
      return auth.rightsOf(raw).then((rights) => callerOf(withScope(rights, scope), rights.from));
    case "proxy":
      refuseOtherSites(headers);
      if (headers.authorization) return unknownCaller;
      throw new Unauthorized("the header authorization is missing: call this server through its proxy");
    case "loopback":
      checkLocal(headers);
      return unknownCaller;
  }
}

/**
 * Browsers send the credentials that a proxy asks for with every request, also with those that a page
 * of another site makes. They say so in sec-fetch-site.
 */
function refuseOtherSites({ "sec-fetch-site": site }: IncomingMessage["headers"]): void {
  if (site === "cross-site" || site === "same-site")
    throw new Forbidden("this call comes from a web page of another site");
}

/** A caller without a token, on this machine or behind the proxy: it may do everything. */
const unknownCaller: Caller = {
  tokenName: null,
  scopes: allScopes,
  hasPrefixes: false,
  prefixes: null,
  from: undefined,
  may: () => true,
  allows: () => true,
  require: () => {},
};

/** The caller of a route that is open to everybody. */
export const anonymous: Caller = { ...unknownCaller, scopes: [], may: () => false };

/** Throws `Forbidden` if this scope is missing. */
function withScope(rights: Rights, scope: Scope | undefined): Rights {
  if (scope === undefined || rights.scopes.has(scope)) return rights;
  throw new Forbidden(`the token "${rights.name}" lacks the scope ${scope}${includedIn(scope)}`);
}

function callerOf({ name: tokenName, scopes, names, queues }: Rights, from: string | undefined): Caller {
  const allows: Caller["allows"] = ({ name, queue }) =>
    (name === null ? names === null || queues !== null : begins(name, names)) &&
    (queue === null ? queues === null || names !== null : begins(queue, queues));
  const limits = [
    ...(names === null ? [] : [`names that begin with ${names.join(" or ")}`]),
    ...(queues === null ? [] : [`queues that begin with ${queues.join(" or ")}`]),
  ].join(" and ");
  return {
    tokenName,
    scopes: [...scopes],
    from,
    hasPrefixes: names !== null || queues !== null,
    prefixes: names !== null || queues !== null ? { names, queues } : null,
    may: (scope) => scopes.has(scope),
    allows,
    require: (what) => {
      if (allows(what)) return;
      throw new Forbidden(
        `the token "${tokenName}" is limited to ${limits}, and this call concerns ${describe(what)}`,
      );
    },
  };
}

function describe({ name, queue }: Named): string {
  const given = (kind: string, value: string | null | undefined): string[] =>
    typeof value !== "string" ? [] : [value === "" ? `any ${kind}` : `the ${kind} ${values.show(value, 80)}`];
  return [...given("name", name), ...given("queue", queue)].join(" in ");
}

function begins(given: string | undefined, prefixes: readonly string[] | null): boolean {
  return given === undefined || prefixes === null || prefixes.some((prefix) => given.startsWith(prefix));
}

/**
 * Without tokens, a web page that is open in a browser on this machine must not get in: not by a
 * host name of its own that points here (DNS rebinding), and not from its own origin.
 */
function checkLocal({ host = "", origin, "sec-fetch-site": site }: IncomingHttpHeaders): void {
  const name = host.replace(/:\d+$/, "");
  if (!isLoopback(name.replace(/^\[(.*)\]$/, "$1"))) {
    throw new Forbidden(
      `a server without tokens answers requests to localhost only, not to ${values.show(host, 80)}`,
    );
  }
  const isForeign = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
  if (isForeign || site === "cross-site") {
    throw new Forbidden("a server without tokens takes no calls from web pages of other sites");
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
