/**
 * Opens connections for heartbeats, to a database or to a server. It loads only the module it
 * needs: a thread that takes long to start may cost a short lease. Used by the heartbeat thread.
 */

import type { HeartbeatConnection } from "../store/heartbeats.js";
import type { ServerAddress } from "../store/http/address.js";

/** Where to send heartbeats. It can be posted to another thread. */
export type HeartbeatAddress =
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string }
  | ({ readonly kind: "server" } & ServerAddress);

/** Opens a connection, in at most `timeoutMs`. */
export async function openHeartbeat(
  address: HeartbeatAddress,
  timeoutMs: number,
): Promise<HeartbeatConnection> {
  if (address.kind === "server") {
    const { openHttpHeartbeats } = await import("../store/http/heartbeats.js");
    return openHttpHeartbeats(address);
  }
  const { openPostgresHeartbeats } = await import("../store/postgres/heartbeats.js");
  return openPostgresHeartbeats(address, timeoutMs);
}
