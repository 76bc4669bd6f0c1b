/**
 * Opens lines for heartbeats, to a database or to a server. Only what is needed is loaded: a thread that takes long to begin
 * costs a short lease. Used by the heartbeat thread.
 */

import type { Beats } from "../store/beats.js";
import type { ServerAddress } from "../store/http/address.js";

/** Where to beat; can be sent to another thread. */
export type BeatAddress =
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string }
  | ({ readonly kind: "server" } & ServerAddress);

/** Opens a line for beats, in at most `patienceMs`. */
export async function openBeats(address: BeatAddress, patienceMs: number): Promise<Beats> {
  if (address.kind === "server") {
    const { openHttpBeats } = await import("../store/http/beats.js");
    return openHttpBeats(address);
  }
  const { openPostgresBeats } = await import("../store/postgres/beats.js");
  return openPostgresBeats(address, patienceMs);
}
