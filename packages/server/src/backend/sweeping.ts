/**
 * The sweeps that remote workers leave to the server: claims of dead workers end and waiting runs are put right, all the time; runs
 * past their retention are deleted, unless that is switched off.
 */

import { Sweeper } from "pawl/engine";
import type { Parts } from "./backend.js";

/** The lease that workers have by default: so long a look may be put off while nothing happens. */
const leaseMs = 10_000;

export function sweep(
  { store, hub, events, logger }: Parts,
  { reapMs, sweepMs }: { readonly reapMs: number; readonly sweepMs: number | null },
): Sweeper {
  return new Sweeper({
    store,
    logger,
    events,
    reapMs,
    sweepMs,
    leaseMs,
    isBusy: () => false,
    onClaimable: (queue) => hub.nudge(queue),
  });
}
