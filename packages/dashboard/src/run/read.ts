/** Reads everything that the page of a run shows: the run, why it waits, its steps and its children. */

import { ApiProblem, call } from "../api/client.js";
import type { Run, RunPage, Step, StepPage, Why } from "../api/types.js";

export interface RunStory {
  readonly run: Run;
  readonly steps: readonly Step[];
  readonly children: RunPage;
}

export interface ExplainedStory extends RunStory {
  readonly why: Why;
}

/** Pages of steps, each up to 16 MiB; the page shows at most this many steps. */
const maxSteps = 10_000;

const pathOf = (runId: string): string => `v1/runs/${encodeURIComponent(runId)}`;

export async function readStory(runId: string, signal: AbortSignal): Promise<RunStory> {
  const [run, children, steps] = await Promise.all([
    call<Run>(pathOf(runId), { signal }),
    call<RunPage>("v1/runs", { signal, query: { parentId: runId, limit: 100 } }).catch(noneIfForbidden),
    readSteps(pathOf(runId), signal),
  ]);
  return { run, children, steps };
}

export async function readExplained(runId: string, signal: AbortSignal): Promise<ExplainedStory> {
  const [story, why] = await Promise.all([
    readStory(runId, signal),
    call<Why>(`${pathOf(runId)}/why`, { signal }),
  ]);
  return { ...story, why };
}

/** A token for some names may not list the children, which can have any name. */
function noneIfForbidden(error: unknown): RunPage {
  if (error instanceof ApiProblem && error.status === 403) return { runs: [], cursor: null };
  throw error;
}

async function readSteps(path: string, signal: AbortSignal): Promise<Step[]> {
  const steps: Step[] = [];
  let cursor: string | null = null;
  do {
    const query: Record<string, string> = cursor === null ? {} : { cursor };
    const page: StepPage = await call<StepPage>(`${path}/steps`, { signal, query });
    steps.push(...page.steps);
    ({ cursor } = page);
  } while (cursor !== null && steps.length < maxSteps);
  return steps;
}
