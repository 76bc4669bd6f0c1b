/**
 * One request of a delivery. The name of the host is resolved once, what it resolves to is checked, and the connection is made to
 * what was checked, so that a name that changes its address in between leads nowhere else; `Host` and the name in the TLS handshake stay
 * those of the URL. Follows no redirects, has one deadline for everything, and reads little of the answer, to throw it away.
 */

import { lookup as resolveName, type LookupAddress, type LookupOptions } from "node:dns";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { reachOf } from "./addresses.js";
import type { IsAllowed } from "./targets.js";

const maxAnswerBytes = 16 * 1024;

/** The addresses of a host. */
export type Resolve = (host: string, options: LookupOptions) => Promise<LookupAddress[]>;

export interface PostOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isAllowed: IsAllowed;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Default: as the system does. */
  readonly resolve?: Resolve | undefined;
}

/** The target may not be connected to: trying again would not change that. */
export class AddressRefused extends Error {}

/** Sends the request and answers with the status. Throws if there is no answer. */
export async function post(options: PostOptions): Promise<number> {
  const { url: text, headers, body, isAllowed, timeoutMs, signal, resolve = resolveAll } = options;
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  // Addresses in the URL itself are connected to without asking anybody for them.
  const family = isIP(host);
  if (family !== 0) allowedOf(host, [{ address: host, family }], isAllowed);
  const deadline = AbortSignal.timeout(timeoutMs);
  const request = (url.protocol === "https:" ? https : http).request(url, {
    method: "POST",
    headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
    agent: false,
    lookup: checkedLookup(resolve, isAllowed),
    signal: AbortSignal.any([signal, deadline]),
  });
  return new Promise((settle, reject) => {
    request.on("error", (error) => {
      reject(deadline.aborted ? new Error(`no answer within ${timeoutMs} ms`, { cause: error }) : error);
    });
    // Whatever else may end it: an answer that wants another protocol, for example.
    request.on("close", () => reject(new Error("the connection was closed without an answer")));
    request.on("response", (response) => {
      let bytes = 0;
      const end = (): void => {
        response.destroy();
        settle(response.statusCode ?? 0);
      };
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxAnswerBytes) end();
      });
      response.on("end", end);
      // The status is known: how the rest of the answer ends says nothing more.
      response.on("error", end);
    });
    request.end(body);
  });
}

/** Resolves like the system, and gives on only what may be connected to. */
function checkedLookup(resolve: Resolve, isAllowed: IsAllowed): LookupFunction {
  const answer = async (
    host: string,
    options: LookupOptions,
    callback: Parameters<LookupFunction>[2],
  ): Promise<void> => {
    let allowed: LookupAddress[];
    try {
      allowed = allowedOf(host, await resolve(host, { ...options, all: true }), isAllowed);
    } catch (error) {
      callback(error as Error, []);
      return;
    }
    const [{ address, family }] = allowed as [LookupAddress];
    if (options.all === true) callback(null, allowed);
    else callback(null, address, family);
  };
  return (host, options, callback) => void answer(host, options, callback);
}

/** Those addresses of a host that a delivery may connect to; throws if there is none. */
export function allowedOf(
  host: string,
  found: readonly LookupAddress[],
  isAllowed: IsAllowed,
): LookupAddress[] {
  const allowed = found.filter(({ address }) => isAllowed(host, address));
  if (allowed.length > 0) return allowed;
  throw refused(host, found[0]?.address ?? "nothing");
}

const resolveAll: Resolve = (host, options) =>
  new Promise((resolve, reject) => {
    resolveName(host, { ...options, all: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });

function refused(host: string, address: string): AddressRefused {
  const how =
    reachOf(address) === "private"
      ? "if a delivery may go there, list it in PAWL_DELIVERY_ALLOW_PRIVATE"
      : "no delivery goes to link-local addresses, metadata services and addresses of nobody";
  return new AddressRefused(`${host} is ${address}, which is not an address of the public internet; ${how}`);
}
