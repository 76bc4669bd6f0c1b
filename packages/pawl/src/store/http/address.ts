/**
 * The address of a server: its URL and bearer token, checked. A thread can receive it as a message.
 */

import { InvalidOption } from "../../values/errors.js";
import { checkString } from "../../values/options.js";

export interface ServerAddress {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string | undefined;
}

/** Whether this looks like the URL of a server. */
export function isServerUrl(url: unknown): url is string {
  return typeof url === "string" && /^https?:\/\//i.test(url);
}

/**
 * Checks an address. Errors never quote the URL, because it may contain a secret. `what` names its
 * source.
 */
export function checkServerUrl(url: unknown, token: unknown, what = "url"): ServerAddress {
  if (!isServerUrl(url))
    throw new InvalidOption(`${what} must be a string that begins with http:// or https://`);
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new InvalidOption(`${what} is not a valid HTTP URL; write it like https://pawl.example.com:8080`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    throw new InvalidOption(
      `${what} must not contain a user or password; pass the secret as the option token`,
    );
  }
  if (parsed.search !== "" || parsed.hash !== "") {
    throw new InvalidOption(`${what} must not have a query or a fragment`);
  }
  return {
    url: parsed.href.replace(/\/+$/, ""),
    token: token === undefined ? undefined : checkToken(token),
  };
}

/** Refuses options that only apply to a database. */
export function refuseOptions(given: object, names: readonly string[], of: string): void {
  const name = names.find((one) => (given as Record<string, unknown>)[one] !== undefined);
  if (name === undefined) return;
  throw new InvalidOption(
    `the option ${name} of ${of} is only for a database URL; with a server URL, the server sets it`,
  );
}

/** Checks that a header can carry the token. Errors never quote it. */
function checkToken(token: unknown): string {
  if (typeof token !== "string") throw new InvalidOption(`token must be a string, not ${typeof token}`);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new InvalidOption("token must be printable ASCII without spaces, at least one character");
  }
  return checkString(token, "token", { maxBytes: 4_096 });
}
