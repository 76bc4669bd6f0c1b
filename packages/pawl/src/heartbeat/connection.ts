/**
 * Opens connections for heartbeats, to a database or to a server. It loads only the module it
 * needs: a thread that takes long to start may cost a short lease. Used by the heartbeat thread.
 *
 * A function cannot be posted to a thread. So for a password that a function returns, the thread
 * asks the main loop at each new connection (`toThread`). A user's own pool cannot leave the main
 * loop at all.
 */

import type { ConnectionOptions, DatabaseSource } from "../store/driver/source-types.js";
import type { HeartbeatConnection } from "../store/heartbeats.js";
import type { ServerAddress } from "../store/http/address.js";

/** Where to send heartbeats. */
export type HeartbeatAddress =
  | {
      readonly kind: "postgres";
      readonly url: DatabaseSource;
      readonly schema: string;
      /** The number of the function that returns the password, if the main loop has it. */
      readonly asks?: number;
    }
  | ({ readonly kind: "server" } & ServerAddress);

type Password = () => string | Promise<string>;

const passwords: Password[] = [];

/** The address as it can be posted to the thread; null if it cannot leave the main loop. */
export function toThread(address: HeartbeatAddress): HeartbeatAddress | null {
  if (address.kind === "server" || typeof address.url === "string") return address;
  if ("connect" in address.url) return null;
  const { password, ...rest }: ConnectionOptions = address.url;
  if (typeof password !== "function") return address;
  const known = passwords.indexOf(password);
  const asks = known === -1 ? passwords.push(password) - 1 : known;
  return { ...address, url: rest, asks };
}

/** The answer of the main loop to a thread that asks. */
export async function passwordOf(asks: number): Promise<string> {
  return passwords[asks]!();
}

const pools = new WeakMap<object, number>();
let lastPool = 0;

/** A text that two addresses share only if their heartbeats can share connections. */
export function lineKey(address: HeartbeatAddress): string {
  if (address.kind === "server" || typeof address.url === "string" || !("connect" in address.url)) {
    return JSON.stringify(address);
  }
  const number = pools.get(address.url) ?? ++lastPool;
  pools.set(address.url, number);
  return JSON.stringify([number, address.schema]);
}

/** Opens a connection, in at most `timeoutMs`. */
export async function openHeartbeat(
  address: HeartbeatAddress,
  timeoutMs: number,
  ask: (asks: number) => Promise<string>,
): Promise<HeartbeatConnection> {
  if (address.kind === "server") {
    const { openHttpHeartbeats } = await import("../store/http/heartbeats.js");
    return openHttpHeartbeats(address);
  }
  const { openPostgresHeartbeats } = await import("../store/postgres/heartbeats.js");
  const { url, schema, asks } = address;
  const source = asks === undefined ? url : { ...(url as ConnectionOptions), password: () => ask(asks) };
  return openPostgresHeartbeats({ url: source, schema }, timeoutMs);
}
