/**
 * One request of a delivery. Resolves the host name once, checks the addresses, and connects to a
 * checked one, so that a name that changes its address in between (DNS rebinding) leads nowhere
 * else. `Host` and the TLS server name stay those of the URL. Follows no redirects, has one
 * deadline for everything, and discards the body of the answer. Called by `delivery.ts`.
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
  /** Default: the resolver of the system. */
  readonly resolve?: Resolve | undefined;
}

/** Deliveries may not connect to the target: a retry would not help. */
export class AddressRefused extends Error {}

/** Sends the request and returns the status. Throws if there is no answer. */
export async function post(options: PostOptions): Promise<number> {
  const { url: text, headers, body, isAllowed, timeoutMs, signal, resolve = resolveAll } = options;
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  // Node does not look up an address in the URL: check it here.
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
    // Other ends of the request, such as an answer that asks for another protocol.
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
      // The status is known; an error in the rest of the answer does not matter.
      response.on("error", end);
    });
    request.end(body);
  });
}

/** Resolves a host and returns only the addresses that a delivery may connect to. */
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

/** The addresses of a host that a delivery may connect to; throws if there is none. */
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
      ? "to allow deliveries there, list it in PAWL_DELIVERY_ALLOW_PRIVATE"
      : "deliveries never go to link-local addresses, metadata services and reserved addresses";
  return new AddressRefused(`${host} is ${address}, which is not an address of the public internet; ${how}`);
}
