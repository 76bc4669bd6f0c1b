/**
 * Follows runs by looking at them again and again, through the public API alone, so over either way to the runs. An event is told when
 * what people see of a run or a step has changed; what came and went between two looks is not seen.
 */

import { setTimeout as wait } from "node:timers/promises";
import type { ListOptions, Pawl, Run, Step } from "pawl";

export type RunEvent =
  | { readonly event: "run"; readonly run: Run }
  | { readonly event: "step"; readonly runId: string; readonly step: Step };

const leastWaitMs = 250;
/** Looks take at most this part of the time. */
const restFactor = 4;
/** How many of the newest runs are looked at; older ones are not followed any more. */
const mostPages = 10;
const pageSize = 100;

/** A run until it ends. */
export async function* follow(pawl: Pawl, runId: string): AsyncGenerator<RunEvent> {
  const seen = new Map<string, string>();
  for (;;) {
    const began = performance.now();
    const run = await pawl.runs.get(runId);
    // After the run: what has ended has all its steps in the journal.
    const steps = run.kind === "workflow" ? await pawl.runs.steps(runId) : [];
    for (const step of steps) {
      if (isNews(seen, `step ${step.name}`, [step.status, step.attempt]))
        yield { event: "step", runId, step };
    }
    if (isNews(seen, runId, signsOf(run))) yield { event: "run", run };
    if (run.status !== "running") return;
    await rest(began);
  }
}

/** All runs that begin from now on. */
export async function* followAll(pawl: Pawl, filter: ListOptions): AsyncGenerator<RunEvent> {
  const { status, phase, ...choice } = filter;
  const isWanted = (run: Run): boolean =>
    (status === undefined || run.status === status) && (phase === undefined || run.phase === phase);
  const old = await pawl.runs.list({ ...choice, limit: pageSize });
  const since = old.runs[0]?.startedAt;
  const known = new Set(old.runs.map(({ runId }) => runId));
  const seen = new Map<string, string>();
  for (;;) {
    const began = performance.now();
    const news: Run[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < mostPages; page++) {
      const { runs, cursor: next } = await pawl.runs.list({ ...choice, since, cursor, limit: pageSize });
      news.push(...runs.filter((run) => !known.has(run.runId) && isNews(seen, run.runId, signsOf(run))));
      if (next === null) break;
      cursor = next;
    }
    for (const run of news.toReversed()) if (isWanted(run)) yield { event: "run", run };
    await rest(began);
  }
}

const signsOf = (run: Run): unknown[] => [run.status, run.phase, run.step, run.attempt];

function isNews(seen: Map<string, string>, key: string, signs: readonly unknown[]): boolean {
  const text = JSON.stringify(signs);
  if (seen.get(key) === text) return false;
  seen.set(key, text);
  return true;
}

async function rest(beganMs: number): Promise<void> {
  const tookMs = performance.now() - beganMs;
  await wait(Math.max(leastWaitMs, tookMs * restFactor));
}
