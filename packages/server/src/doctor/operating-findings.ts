/**
 * Judges concurrency limits and bulk operations, like `findings.ts`. Pure. Used by `examine.ts`.
 */

import type { SchemaHealth } from "pawl/engine";
import { type Finding, judge, type Problem } from "./findings.js";
import { duration, plural, printable } from "./text.js";

type LimitFact = SchemaHealth["limits"][number];
type BulkFact = SchemaHealth["bulk"][number];

/** A full limit does its work: a note. A slot that no run of a live worker holds is a fault. */
export function judgeLimits({ limits }: SchemaHealth, patienceMs: number): Finding[] {
  const problems = limits.flatMap((fact) => problemOf(fact, patienceMs));
  const notes = limits.flatMap((fact) => noteOf(fact, patienceMs));
  if (notes.length > 0 && problems.length === 0) return notes;
  const well = `no run has waited for a slot of its concurrency limit for more than ${duration(patienceMs)}`;
  return [...judge("limits", well, problems), ...notes];
}

const nameOf = (key: string): string => key.split(":", 1)[0]!;

function problemOf(fact: LimitFact, patienceMs: number): Problem[] {
  const { concurrent, held, dead, waitingMs, holders } = fact;
  const key = printable(fact.key);
  if (concurrent === null) {
    return [
      [
        `${held === 0 ? "runs wait for" : plural(held, "run executes with", "runs execute with")} the concurrency limit "${key}", which is not set: any number of them executes at once`,
        `set it: pawl limits set ${nameOf(key)} --concurrent <number>`,
      ],
    ];
  }
  if (waitingMs === null) return [];
  const repair = "a live worker repairs this within seconds; start one, or read the logs of the workers";
  if (held - dead < concurrent && dead > 0) {
    return [
      [
        `runs wait for the limit "${key}": ${plural(dead, "of its slots is", "of its slots are")} held by runs of dead workers (its holders: run ${list(holders)})`,
        repair,
      ],
    ];
  }
  if (held < concurrent && waitingMs > patienceMs) {
    const free = concurrent - held;
    return [
      [
        `the first run in line for the limit "${key}" has waited for ${duration(waitingMs)}, although ${plural(free, "slot is", "slots are")} free`,
        repair,
      ],
    ];
  }
  return [];
}

function noteOf(fact: LimitFact, patienceMs: number): Finding[] {
  const { concurrent, held, dead, waitingMs, holders } = fact;
  if (concurrent === null || waitingMs === null || waitingMs <= patienceMs || held - dead < concurrent)
    return [];
  const key = printable(fact.key);
  return [
    {
      check: "limits",
      level: "note",
      text: `the first run in line for the limit "${key}" has waited for ${duration(waitingMs)}: ${held} of ${plural(concurrent, "slot is", "slots are")} held by run ${list(holders)}`,
      fix: `look at a holder: pawl runs show ${holders[0] ?? ""}; if all is well, raise the limit: pawl limits set ${nameOf(key)} --concurrent ${concurrent * 2}`,
    },
  ];
}

const list = (runs: readonly string[]): string => runs.join(", ");

export function judgeBulk({ bulk, liveWorkers }: SchemaHealth, patienceMs: number): Finding[] {
  const open = bulk.filter(({ status }) => status === "working").length;
  const well =
    open === 0
      ? "no bulk operation is open, and none failed today"
      : `${plural(open, "bulk operation")} in progress`;
  return judge(
    "bulk",
    well,
    bulk.flatMap((fact) => problemOfBulk(fact, liveWorkers, patienceMs)),
  );
}

function problemOfBulk(fact: BulkFact, liveWorkers: number, patienceMs: number): Problem[] {
  const { id, action, who, status, counted, through, locked, idleMs, error } = fact;
  const what = `bulk operation ${id} (${action}, by ${printable(who)})`;
  if (status === "failed") {
    return [
      [
        `${what} failed ${duration(idleMs)} ago after ${through} of ${plural(counted, "run")}: ${printable(error ?? "")}`,
        `see what it has reached: pawl bulk show ${id}; remove the cause and start it again: it skips runs that no longer match`,
      ],
    ];
  }
  if (idleMs <= patienceMs) return [];
  const reason = locked > 0 ? `; ${plural(locked, "run is", "runs are")} locked by other transactions` : "";
  const fix =
    locked > 0
      ? `find the transactions that lock them, see "transactions" above`
      : liveWorkers === 0
        ? "start a worker or a server: they work it off"
        : "read the logs of the workers and servers: they work it off";
  return [
    [
      `${what} has made no progress for ${duration(idleMs)}: ${through} of ${plural(counted, "run is", "runs are")} through${reason}`,
      `${fix}; or stop it: pawl bulk stop ${id}`,
    ],
  ];
}
