/**
 * Bearer tokens as the operator lists them: a name, scopes, prefixes of names and queues, and a
 * secret or its hash. The server keeps hashes only, and compares a caller's secret with all of them
 * in constant time. `auth.ts` reads them; `pawl token create` writes them.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import { InvalidOption, Unauthorized } from "pawl";
import { values } from "pawl/engine";
import type { Scope } from "./app.js";

export interface Token extends Rights {
  readonly hash: Buffer;
}

/** The rights of a caller with a name. */
export interface Rights {
  readonly name: string;
  /** Its scopes, and the scopes that they include. */
  readonly scopes: ReadonlySet<Scope>;
  /** The token reaches definitions and limits whose name begins with one of these; null: all. */
  readonly names: readonly string[] | null;
  /** The token reaches queues whose name begins with one of these; null: all. */
  readonly queues: readonly string[] | null;
}

/** A scope, and the scopes it includes. */
const includes: Readonly<Record<Scope, readonly Scope[]>> = {
  start: ["start"],
  read: ["read"],
  write: ["write", "read", "start"],
  worker: ["worker"],
  admin: ["admin", "read", "write", "worker", "start"],
};
export const allScopes = Object.keys(includes) as readonly Scope[];

/** These scopes and those that they include. */
export const withIncluded = (scopes: readonly Scope[]): ReadonlySet<Scope> =>
  new Set(scopes.flatMap((scope) => includes[scope]));

/** Which other scopes include this one, for messages: ", which write and admin include". */
export function includedIn(scope: Scope): string {
  const others = Object.entries(includes).filter(([name, has]) => name !== scope && has.includes(scope));
  if (others.length === 0) return "";
  return `, which ${others.map(([name]) => name).join(" and ")} include${others.length === 1 ? "s" : ""}`;
}

const scopeNames = allScopes.join(", ");
const minSecretLength = 16;
const namePattern = /^[a-z0-9][a-z0-9_-]{0,47}$/i;
const prefixPattern = /^[a-z0-9][a-z0-9_-]{0,47}$/;
const secretPattern = /^[\w.~+/=-]+$/;
const limitPattern = /^(names|queues)=(.*)$/;

/** The form of a token, for messages. */
export const tokenForm =
  "name:scope+scope[:names=prefix+prefix][:queues=prefix+prefix]:secret, or sha256:<64 hex digits> for the secret";

export function checkTokens(given: unknown): Token[] {
  if (!Array.isArray(given) || given.length === 0) {
    // Not shown: it may contain secrets.
    throw new InvalidOption(`tokens must be a list with at least one text such as ${tokenForm}`);
  }
  const tokens = (given as unknown[]).map((text, index) => parseToken(text, index));
  const names = tokens.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new InvalidOption(`two tokens have the name "${twice}": give each a name of its own`);
  const hashes = tokens.map(({ hash }) => hash.toString("hex"));
  const same = hashes.findIndex((hash, index) => hashes.indexOf(hash) !== index);
  if (same !== -1) {
    throw new InvalidOption(
      `the tokens "${names[hashes.indexOf(hashes[same]!)]}" and "${names[same]}" have the same secret, ` +
        "so the server cannot tell them apart: create another one with pawl token create",
    );
  }
  return tokens;
}

/** The token in this header. Compares with all of them, every time. */
export function findToken(tokens: readonly Token[], authorization: string | undefined): Token {
  const secret = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  if (secret === undefined)
    throw new Unauthorized("this call needs a bearer token: send the header authorization: Bearer <token>");
  // A hash does not say how long its secret is, so a short one is refused here.
  if (secret.length < minSecretLength) {
    throw new Unauthorized(
      `a token has at least ${minSecretLength} characters; create one with pawl token create`,
    );
  }
  const hash = hashOf(secret);
  let found: Token | undefined;
  for (const token of tokens) if (timingSafeEqual(token.hash, hash)) found = token;
  if (found === undefined) throw new Unauthorized("this server does not know this token");
  return found;
}

/** The entry of a token in `PAWL_TOKENS`, checked, with the hash of its secret. */
export function tokenEntry(parts: {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly names: readonly string[];
  readonly queues: readonly string[];
  readonly secret: string;
}): string {
  const { name, scopes, names, queues, secret } = parts;
  if (!namePattern.test(name)) {
    throw new InvalidOption(
      `the name of a token must be 1 to 48 letters, digits, _ and -, the first a letter or digit; not ${values.show(name)}`,
    );
  }
  const entry = [
    name,
    scopes.join("+"),
    ...(names.length === 0 ? [] : [`names=${names.join("+")}`]),
    ...(queues.length === 0 ? [] : [`queues=${queues.join("+")}`]),
    `sha256:${hashOf(secret).toString("hex")}`,
  ].join(":");
  checkTokens([entry]);
  return entry;
}

function parseToken(text: unknown, index: number): Token {
  const [name = "", listed = "", ...rest] = typeof text === "string" ? text.split(":") : [];
  const end = rest.findIndex((part) => !limitPattern.test(part));
  const limits = end < 0 ? rest : rest.slice(0, end);
  const secret = rest.slice(limits.length).join(":");
  if (!namePattern.test(name) || !/^[a-z+]+$/i.test(listed) || secret === "") {
    throw new InvalidOption(
      `token ${index + 1} must have the form ${tokenForm}; the name has letters, digits, _ and -`,
    );
  }
  const scopes = listed.split("+").map((scope) => checkScope(scope, name));
  return {
    name,
    scopes: withIncluded(scopes),
    hash: checkSecret(secret, name),
    names: readPrefixes(limits, "names", name),
    queues: readPrefixes(limits, "queues", name),
  };
}

export function checkScope(scope: unknown, name: string): Scope {
  if (typeof scope === "string" && Object.hasOwn(includes, scope)) return scope as Scope;
  throw new InvalidOption(
    `the token "${name}" has the unknown scope ${values.show(scope)}; scopes are ${scopeNames}, joined with +`,
  );
}

function readPrefixes(limits: readonly string[], kind: "names" | "queues", name: string): string[] | null {
  const given = limits.filter((limit) => limit.startsWith(`${kind}=`));
  if (given.length === 0) return null;
  return checkPrefixes(
    given.flatMap((limit) => limit.slice(kind.length + 1).split("+")),
    kind,
    name,
  );
}

export function checkPrefixes(
  prefixes: readonly unknown[],
  kind: "names" | "queues",
  name: string,
): string[] {
  const isPrefix = (prefix: unknown): prefix is string =>
    typeof prefix === "string" && prefixPattern.test(prefix);
  const wrong = prefixes.find((prefix) => !isPrefix(prefix));
  if (wrong === undefined) return prefixes.filter((prefix) => isPrefix(prefix));
  throw new InvalidOption(
    `the token "${name}" has the prefix ${values.show(wrong)} in ${kind}=; a prefix has 1 to 48 characters ` +
      "of a-z, 0-9, _ and -, the first a letter or digit; join several with +",
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
  if (!secretPattern.test(secret)) {
    throw new InvalidOption(
      `the secret of the token "${name}" may only have letters, digits and - . _ ~ + / =`,
    );
  }
  if (secret.length >= minSecretLength) return hashOf(secret);
  throw new InvalidOption(
    `the secret of the token "${name}" has ${secret.length} characters; it needs at least ${minSecretLength}, better 32 random ones: ` +
      "create one with pawl token create",
  );
}

function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
