/** Sequences that are always played: they lead to the answers that random ones rarely get. */

import type { Intent } from "./intents.js";

const commit = (outcome: (Intent & { what: "commit" })["outcome"], handOver = false): Intent => ({
  what: "commit",
  pick: 0,
  outcome,
  handOver,
});
const start = (partitionKey?: string): Intent => ({
  what: "start",
  run: partitionKey === undefined ? {} : { partitionKey },
  isDirect: false,
  worker: "a",
});
const claim: Intent = { what: "claim", worker: "a", queue: "default", limit: 4 };
const pay: Intent = { what: "signal", signals: [{ pick: 0, name: "pay", payload: {} }] };
const lapse: Intent = { what: "lapse", worker: "a" };
const beat: Intent = { what: "beat", worker: "a" };
const cancel: Intent = { what: "cancel", pick: 0, cascade: true };

export const examples: readonly (readonly Intent[])[] = [
  // a worker dies
  [start(), claim, lapse, beat, { what: "reap" }, { what: "claim", worker: "b", queue: "default", limit: 1 }],
  // children end, and their parent goes on
  [
    start(),
    claim,
    commit({ kind: "spawn", step: "two", children: [{}] }),
    claim,
    commit({ kind: "done" }),
    claim,
  ],
  // the next run of a key is handed over
  [start("k"), start("k"), claim, commit({ kind: "done" }, true), commit({ kind: "done" })],
  // a signal arrives while a claim goes on
  [
    start(),
    claim,
    pay,
    commit({ kind: "keep", step: "two" }),
    commit({ kind: "await", names: ["pay"], step: "one" }),
  ],
  // a signal comes after a wait has timed out, and before the run is claimed again
  [
    start(),
    claim,
    commit({ kind: "await", names: ["pay"], step: "one", timeoutMs: 0 }),
    claim,
    pay,
    commit({ kind: "retry", delayMs: 0 }),
    claim,
    commit({ kind: "await", names: ["pay"], step: "two" }),
    claim,
  ],
  // a run is cancelled twice while a worker has it
  [start(), claim, cancel, cancel, beat, { what: "release", pick: 0 }],
];
