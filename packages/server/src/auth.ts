/**
 * Who may call: tokens with scopes; or a proxy in front, which has checked its callers, named as such; or, with neither, callers
 * on this machine only. Tokens are kept as hashes and compared in constant time, all of them every time. Asked before anything of
 * a request is read but its headers.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIPv4 } from "node:net";
import { Forbidden, InvalidOption, Unauthorized } from "pawl";
import { show } from "pawl/engine";
import type { Scope } from "./app.js";

interface Token {
  readonly name: string;
  readonly hash: Buffer;
  readonly scopes: ReadonlySet<Scope>;
}

/** What stands between the API and the world. */
export type Perimeter =
  | { readonly kind: "tokens"; readonly tokens: readonly Token[] }
  | { readonly kind: "proxy" }
  | { readonly kind: "loopback" };

/** What a scope includes beside itself. */
const includes: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ["read"],
  write: ["write", "read"],
  worker: ["worker"],
  admin: ["admin", "read", "write", "worker"],
};
const tokenForm = "name:scope+scope:secret or name:scope+scope:sha256:<64 hex digits>";

/** The perimeter that these options mean; a listener that the world can reach needs one of the first two. */
export function checkPerimeter(given: {
  readonly tokens: unknown;
  readonly proxyAuth: unknown;
  readonly host: string;
}): Perimeter {
  const { tokens, proxyAuth = false, host } = given;
  if (typeof proxyAuth !== "boolean") {
    throw new InvalidOption(`proxyAuth must be true or false, not ${show(proxyAuth)}`);
  }
  if (tokens !== undefined) {
    if (proxyAuth)
      throw new InvalidOption("give tokens or proxyAuth, not both: one of them decides who may call");
    return { kind: "tokens", tokens: checkTokens(tokens) };
  }
  if (proxyAuth) return { kind: "proxy" };
  if (isLoopback(host)) return { kind: "loopback" };
  throw new InvalidOption(
    `the host ${show(host)} can be reached from other machines, and nothing says who may call: give tokens ` +
      `(PAWL_TOKENS, such as ${tokenForm}); or proxyAuth (PAWL_PROXY_AUTH=1) if a proxy in front checks its callers; ` +
      "or listen on 127.0.0.1",
  );
}

/**
 * Lets a request pass that may do what takes this scope; throws `Unauthorized` or `Forbidden`. Answers who calls, as far as it can be
 * told: the name of the token; what the proxy lets through, as a hash; nobody in particular on this machine.
 */
export function admit(perimeter: Perimeter, headers: IncomingHttpHeaders, scope: Scope | undefined): string {
  switch (perimeter.kind) {
    case "tokens": {
      const token = findToken(perimeter.tokens, headers.authorization);
      // A path that there is none of takes a token of whatever scope.
      if (scope === undefined || token.scopes.has(scope)) return token.name;
      throw new Forbidden(`the token "${token.name}" lacks the scope ${scope}`);
    }
    case "proxy":
      if (headers.authorization) return `proxy:${hashOf(headers.authorization).toString("hex")}`;
      throw new Unauthorized(
        "the header authorization is missing: this server takes calls through its proxy only",
      );
    case "loopback":
      admitLocal(headers);
      return "";
  }
}

/**
 * Without tokens a web page that is open on this machine must not get in by the browser: neither by a name of its own that leads
 * here (the host would be that name), nor from its own origin.
 */
function admitLocal({ host = "", origin, "sec-fetch-site": site }: IncomingHttpHeaders): void {
  const name = host.replace(/:\d+$/, "");
  if (!isLoopback(name.replace(/^\[(.*)\]$/, "$1"))) {
    throw new Forbidden(`without tokens this server answers to localhost only, not to ${show(host, 80)}`);
  }
  const isForeign = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
  if (isForeign || site === "cross-site") {
    throw new Forbidden("without tokens this server takes no calls from pages of other sites");
  }
}

function findToken(tokens: readonly Token[], authorization: string | undefined): Token {
  const secret = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  if (secret === undefined)
    throw new Unauthorized("a token is needed: send the header authorization: Bearer <token>");
  const hash = hashOf(secret);
  let found: Token | undefined;
  for (const token of tokens) if (timingSafeEqual(token.hash, hash)) found = token;
  if (found === undefined) throw new Unauthorized("this token is not known here");
  return found;
}

function checkTokens(given: unknown): Token[] {
  if (!Array.isArray(given) || given.length === 0) {
    // Not shown: it may hold secrets.
    throw new InvalidOption(`tokens must be a list of texts such as ${tokenForm}, at least one`);
  }
  const tokens = (given as unknown[]).map((text, index) => parseToken(text, index));
  const names = tokens.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new InvalidOption(`two tokens have the name "${twice}": give each a name of its own`);
  return tokens;
}

function parseToken(text: unknown, index: number): Token {
  const [, name = "", listed = "", secret = ""] =
    /^([a-z0-9][a-z0-9_-]{0,47}):([a-z+]+):([\w.~+/:=-]+)$/i.exec(typeof text === "string" ? text : "") ?? [];
  if (secret === "") {
    throw new InvalidOption(
      `token ${index + 1} must be ${tokenForm}, the secret of letters, digits and any of - . _ ~ + / =`,
    );
  }
  const scopes = listed.split("+").map((scope) => checkScope(scope, name));
  return {
    name,
    scopes: new Set(scopes.flatMap((scope) => includes[scope])),
    hash: checkSecret(secret, name),
  };
}

function checkScope(scope: string, name: string): Scope {
  if (Object.hasOwn(includes, scope)) return scope as Scope;
  throw new InvalidOption(
    `the token "${name}" has the scope ${show(scope)}; scopes are ${Object.keys(includes).join(", ")}, joined by +`,
  );
}

function checkSecret(secret: string, name: string): Buffer {
  const hex = /^sha256:(.*)$/.exec(secret)?.[1];
  if (hex !== undefined) {
    if (/^[0-9a-f]{64}$/i.test(hex)) return Buffer.from(hex, "hex");
    throw new InvalidOption(`the hash of the token "${name}" must be sha256: and 64 hex digits`);
  }
  if (secret.includes(":"))
    throw new InvalidOption(`the secret of the token "${name}" must not contain a colon`);
  if (secret.length >= 16) return hashOf(secret);
  throw new InvalidOption(
    `the secret of the token "${name}" has ${secret.length} characters; at least 16, better 32 random ones`,
  );
}

function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
