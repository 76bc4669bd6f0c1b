/**
 * The sweeps that remote workers leave to the server: claims of dead workers end and waiting runs are put right, all the time; runs
 * past their retention are deleted, unless that is switched off.
 */

import { Sweeper } from "pawl/engine";
import type { Parts } from "./parts.js";

/** As often as a worker of its own would, by default. */
const reapMs = 1_000;
const leaseMs = 10_000;

export function sweep({ store, hub, logger }: Parts, sweepMs: number | null): Sweeper {
  return new Sweeper({
    store,
    logger,
    reapMs,
    sweepMs,
    leaseMs,
    isBusy: () => false,
    onClaimable: (queue) => hub.nudge(queue),
  });
}
