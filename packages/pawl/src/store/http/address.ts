/** Where a server is: its URL, checked, and the token to show. Can be sent to another thread. */

import { InvalidOption } from "../../values/errors.js";
import { checkString } from "../../values/options.js";

export interface ServerAddress {
  /** Without a slash at the end. */
  readonly url: string;
  readonly token: string | undefined;
}

/** Whether this is meant to be the URL of a server. */
export function isServerUrl(url: unknown): url is string {
  return typeof url === "string" && /^https?:\/\//i.test(url);
}

/** The address of a server; refuses what is none without repeating it, since it may hold a secret. `what` says where it came from. */
export function checkServerUrl(url: unknown, token: unknown, what = "url"): ServerAddress {
  if (!isServerUrl(url))
    throw new InvalidOption(`${what} must be a string that begins with http:// or https://`);
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new InvalidOption(`${what} is not a valid HTTP URL; it looks like https://pawl.example.com:8080`);
  }
  if (parsed.username !== "" || parsed.password !== "") {
    throw new InvalidOption(`${what} must not hold a user or password; give the secret as the option token`);
  }
  if (parsed.search !== "" || parsed.hash !== "") {
    throw new InvalidOption(`${what} must end with its path: it has a query or a fragment`);
  }
  return {
    url: parsed.href.replace(/\/+$/, ""),
    token: token === undefined ? undefined : checkToken(token),
  };
}

/** Options that have a meaning for a database alone. */
export function refuseOptions(given: object, names: readonly string[], of: string): void {
  const name = names.find((one) => (given as Record<string, unknown>)[one] !== undefined);
  if (name === undefined) return;
  throw new InvalidOption(
    `the option ${name} of ${of} is for a database; a server (an HTTP URL) has its own`,
  );
}

/** A token as a header can carry it. Never shown: it is a secret. */
function checkToken(token: unknown): string {
  if (typeof token !== "string") throw new InvalidOption(`token must be a string, not ${typeof token}`);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new InvalidOption("token must be made of printable ASCII characters without spaces, at least one");
  }
  return checkString(token, "token", { maxBytes: 4_096 });
}
