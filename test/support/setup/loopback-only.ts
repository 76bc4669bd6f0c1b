/**
 * Keeps every test on this machine, also if the code under test is wrong: a connection of a test's process
 * to an address that is not loopback fails before it is made, and no resolver is asked for any name: but for
 * localhost there is none. A test that resolves names itself is held to what it answers. A setup file of
 * every project.
 */

import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction, Socket } from "node:net";

interface Target {
  readonly path?: string;
  readonly port?: number;
  readonly host?: string;
  lookup?: LookupFunction;
}

const connect = Socket.prototype.connect as (this: Socket, ...given: unknown[]) => Socket;

Socket.prototype.connect = function guarded(this: Socket, ...given: unknown[]): Socket {
  const [target, ...rest] = withTarget(given);
  const { path, host = "localhost", lookup } = target;
  if (path === undefined && host !== "localhost") {
    if (isIP(host) !== 0) requireLoopback(host);
    else target.lookup = lookup === undefined ? unknownName : checked(lookup);
  }
  return connect.apply(this, Array.isArray(given[0]) ? given : [target, ...rest]);
};

/** The arguments with options in the first place. Node passes its own on as one list of options and callback. */
function withTarget(given: unknown[]): [Target, ...unknown[]] {
  const [first, second, ...rest] = given;
  if (Array.isArray(first)) return [first[0] as Target];
  if (typeof first === "object" && first !== null) return [first, second, ...rest];
  if (typeof first === "string" && Number.isNaN(Number(first))) return [{ path: first }, second, ...rest];
  const port = Number(first);
  return typeof second === "string" ? [{ port, host: second }, ...rest] : [{ port }, second, ...rest];
}

const unknownName: LookupFunction = (host, _options, callback) => {
  const told = { code: "ENOTFOUND", syscall: "getaddrinfo", hostname: host };
  process.nextTick(callback, Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), told), []);
};

function checked(lookup: LookupFunction): LookupFunction {
  return (host, options, callback) =>
    lookup(host, options, (error, found, family) => {
      const addresses: readonly (LookupAddress | string)[] = typeof found === "string" ? [found] : found;
      try {
        for (const one of error === null ? addresses : [])
          requireLoopback(typeof one === "string" ? one : one.address);
      } catch (outside) {
        callback(outside as Error, []);
        return;
      }
      callback(error, found, family);
    });
}

function requireLoopback(address: string): void {
  if (/^(127\.|::1$|::ffff:127\.|::ffff:7f)/i.test(address)) return;
  throw new Error(`a test has tried to connect to ${address}: tests stay on loopback`);
}
