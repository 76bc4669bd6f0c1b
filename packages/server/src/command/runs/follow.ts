/**
 * Follows runs by polling the public API, so it works on a database and through a server. It yields
 * an event when a run or a step has changed, and misses changes that came and went between two
 * polls. Used by `tail.ts`.
 */

import { setTimeout as wait } from "node:timers/promises";
import type { ListOptions, Pawl, Run, Step } from "pawl";

export type RunEvent =
  | { readonly event: "run"; readonly run: Run }
  | { readonly event: "step"; readonly runId: string; readonly step: Step };

const minWaitMs = 250;
/** Rest this many times as long as a poll took. */
const restFactor = 4;
/** Pages of the newest runs to poll; older runs are no longer followed. */
const maxPages = 10;
const pageSize = 100;

/** A run until it ends. */
export async function* follow(pawl: Pawl, runId: string): AsyncGenerator<RunEvent> {
  const seen = new Map<string, string>();
  for (;;) {
    const began = performance.now();
    const run = await pawl.runs.get(runId);
    // Read after the run: the journal of an ended run is complete.
    const steps = run.kind === "workflow" ? await pawl.runs.steps(runId) : [];
    for (const step of steps) {
      if (hasChanged(seen, `step ${step.name}`, [step.status, step.attempt]))
        yield { event: "step", runId, step };
    }
    if (hasChanged(seen, runId, signature(run))) yield { event: "run", run };
    if (run.status !== "running") return;
    await rest(began);
  }
}

/** All runs that begin from now on. */
export async function* followAll(pawl: Pawl, filter: ListOptions): AsyncGenerator<RunEvent> {
  // Filters on what changes choose among the events, the others among the runs.
  const { status, phase, error, paused, ...choice } = filter;
  const isWanted = (run: Run): boolean =>
    (status === undefined || run.status === status) &&
    (phase === undefined || run.phase === phase) &&
    (error === undefined || (run.status === "failed" && (run.error?.code ?? run.error?.name) === error)) &&
    (paused === undefined || run.paused?.scope === "run");
  const old = await pawl.runs.list({ ...choice, limit: pageSize });
  const since = old.runs[0]?.startedAt;
  const known = new Set(old.runs.map(({ runId }) => runId));
  const seen = new Map<string, string>();
  for (;;) {
    const began = performance.now();
    const changed: Run[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const { runs, cursor: next } = await pawl.runs.list({ ...choice, since, cursor, limit: pageSize });
      changed.push(
        ...runs.filter((run) => !known.has(run.runId) && hasChanged(seen, run.runId, signature(run))),
      );
      if (next === null) break;
      cursor = next;
    }
    for (const run of changed.toReversed()) if (isWanted(run)) yield { event: "run", run };
    await rest(began);
  }
}

const signature = (run: Run): unknown[] => [run.status, run.phase, run.step, run.attempt, run.paused?.scope];

function hasChanged(seen: Map<string, string>, key: string, state: readonly unknown[]): boolean {
  const text = JSON.stringify(state);
  if (seen.get(key) === text) return false;
  seen.set(key, text);
  return true;
}

async function rest(beganMs: number): Promise<void> {
  const tookMs = performance.now() - beganMs;
  await wait(Math.max(minWaitMs, tookMs * restFactor));
}
