/**
 * What happens to everybody: time passes, processes die, the database crashes and comes back without the commits
 * that nobody waited for. Called by the protocol beside the calls of the processes.
 */

import { lastPlace } from "./postgres.js";
import { setWorker, spend, workerName } from "./processes.js";
import type { Database, State } from "./rows.js";

export interface Happening {
  readonly label: () => string;
  readonly state: State;
  readonly isExpected: boolean;
}

export const happenings = (state: State): Happening[] => [
  ...deadlines(state),
  ...leases(state),
  ...workerCrashes(state),
  ...disk(state),
];

const deadlines = (state: State): Happening[] =>
  state.committed.runs.flatMap((row, run) =>
    row?.status === "awaiting" && row.due === "deadline"
      ? [
          {
            label: () => `the deadline of run ${run + 1} passes`,
            state: inBoth(state, (rows) => {
              const order = lastPlace(rows);
              return { ...rows, runs: rows.runs.with(run, { ...rows.runs[run]!, due: "now", order }) };
            }),
            isExpected: true,
          },
        ]
      : [],
  );

/** A dead worker's lease passes in time; that of a living one only if its beats do not get through. */
const leases = (state: State): Happening[] =>
  state.workers.flatMap((process, worker) => {
    const isDead = process.phase === "dead";
    if (
      state.committed.workers[worker] !== "live" ||
      !(isDead || (state.budget.lapses > 0 && isSpare(state, worker)))
    ) {
      return [];
    }
    const after = inBoth(state, (rows) => ({ ...rows, workers: rows.workers.with(worker, "lapsed") }));
    return [
      {
        label: () => `the lease of ${workerName(worker)} passes`,
        state: isDead ? after : spend(after, "lapses"),
        isExpected: isDead,
      },
    ];
  });

const workerCrashes = (state: State): Happening[] =>
  state.workers.flatMap((process, worker) =>
    process.phase === "dead" || state.budget.workerCrashes === 0 || !isSpare(state, worker)
      ? []
      : [
          {
            label: () => `${workerName(worker)} crashes`,
            state: crashWorker(state, worker),
            isExpected: false,
          },
        ],
  );

const crashWorker = (state: State, worker: number): State => ({
  ...setWorker(spend(state, "workerCrashes"), worker, { phase: "dead" }),
  transactions: state.transactions.filter(({ call }) => !("worker" in call && call.worker === worker)),
});

/** Somebody must be left to do the work. (In truth new workers come; here there is a fixed number of them.) */
const isSpare = (state: State, worker: number): boolean =>
  state.workers.some(
    (process, other) =>
      other !== worker && process.phase !== "dead" && state.committed.workers[other] === "live",
  );

const disk = (state: State): Happening[] => {
  if (state.flushed === null) {
    return [];
  }
  const happened: Happening[] = [
    { label: () => "the database crashes", state: crashDatabase(state, state.flushed), isExpected: false },
  ];
  if (state.flushed !== state.committed) {
    happened.push({
      label: () => "the log reaches the disk",
      state: { ...state, flushed: state.committed },
      isExpected: true,
    });
  }
  return happened;
};

/** Transactions are gone, unheard; so are commits that had not reached the disk. Processes remember what they did. */
const crashDatabase = (state: State, left: Database): State => {
  const after = spend(state, "databaseCrashes");
  return {
    ...after,
    committed: left,
    flushed: after.budget.databaseCrashes > 0 ? left : null,
    transactions: [],
    workers: state.workers.map((process) =>
      "claim" in process && left.runs[process.claim.run]?.epoch !== process.claim.epoch
        ? { ...process, isLost: true }
        : process,
    ),
    senders: state.senders.map((sender) => (sender === "sending" ? "ready" : sender)),
  };
};

/** The clock is not in the database's hands: what passes is also past after a crash. */
const inBoth = (state: State, change: (rows: Database) => Database): State => {
  const committed = change(state.committed);
  const flushed =
    state.flushed === null ? null : state.flushed === state.committed ? committed : change(state.flushed);
  return { ...state, committed, flushed };
};
