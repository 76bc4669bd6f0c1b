/**
 * What happens beside the runs' own path: a worker's beat, which renews its lease unless that has passed; the repair
 * pass, which lets in the next run of a key that nobody holds; the sweep, which deletes terminal runs that nobody
 * holds (retention is over whenever it looks).
 */

import { commits, goOn, type Program, waits } from "../postgres.js";
import { type Call, isTerminal } from "../rows.js";
import { letNextIn, runLock, waitForKeys, workerLock } from "./keys.js";

/** The clock is read first; the row's lock may come later. In between the lease may pass. */
export const beat: Program<Call & { op: "beat" }> = {
  "read the clock": (call, ground) =>
    ground.rows.workers[call.worker] === "live" ? goOn(ground, "renew") : commits(ground, "lapsed"),

  renew(call, ground) {
    if (!ground.isFree(workerLock(call.worker))) {
      return waits;
    }
    return ground.rows.workers[call.worker] === "gone"
      ? commits(ground, "lapsed")
      : goOn(ground, "end", {
          writes: { workers: { [call.worker]: "live" } },
          locks: [workerLock(call.worker)],
        });
  },

  end: (_call, ground) => commits(ground, "alive"),
};

export const repair: Program<Call & { op: "repair" }> = {
  key: (call, ground) => waitForKeys(ground, [call.key]),
  unhold: (call, ground) => commits(ground, "repaired", { writes: letNextIn(ground, [call.key]) }),
};

export const sweep: Program<Call & { op: "sweep" }> = {
  lock(call, ground) {
    const runs = ground.rows.runs.flatMap((row, run) =>
      row !== null && isTerminal(row) && row.holder === null && ground.isFree(runLock(run)) ? [run] : [],
    );
    return runs.length === 0
      ? waits
      : goOn(ground, "delete", { call: { ...call, runs }, locks: runs.map(runLock) });
  },

  delete: (call, ground) =>
    commits(ground, "swept", {
      writes: { runs: Object.fromEntries(call.runs.map((run) => [run, null])) },
      effect: { kind: "swept", runs: call.runs },
    }),
};
