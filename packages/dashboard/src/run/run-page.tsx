/**
 * One run: why it is where it is and what to do about it, its story as a waterfall, and its values.
 */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ApiProblem, call } from "../api/client.js";
import { now } from "../api/clock.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { Run, RunPage as Runs, Step, StepPage, Why } from "../api/types.js";
import { plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { Json } from "../parts/json.js";
import { Empty, Page, Panel, Problem, Skeleton } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { lookOf, RunBadge } from "../parts/status.js";
import { AsCode } from "./as-code.js";
import { ErrorView } from "./error-view.js";
import { Facts } from "./facts.js";
import { Headline } from "./headline.js";
import { Remedies } from "./remedies.js";
import { rowsOfRun, rowsOfSteps } from "./rows.js";
import { Waterfall } from "./waterfall.js";

interface Story {
  readonly run: Run;
  readonly why: Why;
  readonly steps: readonly Step[];
  readonly children: Runs;
}

const runningMs = 2_000;
const endedMs = 15_000;
/** Pages of steps, each up to 16 MiB; the page shows at most this many steps. */
const maxSteps = 10_000;

export function RunPage({ runId }: { runId: string }): JSX.Element {
  const loaded = usePolled(
    `run ${runId}`,
    (aborted) => readStory(runId, aborted),
    (story) => (story?.run.status === "running" ? runningMs : endedMs),
  );
  const { data, problem, reload } = loaded;
  if (data === undefined) {
    const isMissing = problem instanceof ApiProblem && problem.status === 404;
    return (
      <Page title={`Run ${runId}`}>
        {problem === undefined ? (
          <div class="panel">
            <Skeleton lines={8} />
          </div>
        ) : isMissing ? (
          <Empty title={`There is no run ${runId}`}>
            <p>Its retention may have passed, or the address has another server's id.</p>
            <a class="button" href={pageAt("runs")}>
              Show all runs
            </a>
          </Empty>
        ) : (
          <Problem problem={problem} retry={reload} />
        )}
      </Page>
    );
  }
  const { run, why, steps, children } = data;
  const look = lookOf(run);
  return (
    <Page
      title={`${run.name} #${run.runId}`}
      heading={
        <>
          <a class="crumb" href={pageAt("runs", { name: run.name })}>
            {run.name}
          </a>
          <span class="run-number">#{run.runId}</span>
        </>
      }
      actions={<RunBadge run={run} />}
    >
      {problem !== undefined && <Problem problem={problem} retry={reload} />}
      <section class={`why is-${look}`} aria-label="Why">
        <Headline why={why} />
        {why.reason === "unserved" && (
          <p class="muted">
            Start a worker whose <code>serve([…])</code> has {run.name}, version {run.version}. The run
            continues by itself.
          </p>
        )}
        <Remedies run={run} why={why} steps={stepsOf(data)} onDone={reload} />
      </section>
      <Story run={run} steps={steps} children={children.runs} />
      <div class="columns">
        <div class="column">
          {run.error !== null && (
            <Panel title={run.status === "running" ? "Last error" : "Error"}>
              <ErrorView error={run.error} />
            </Panel>
          )}
          {run.status === "completed" && (
            <Panel title="Output">
              <Json value={run.output} label="Output" />
            </Panel>
          )}
          {run.kind === "machine" && run.state !== null && (
            <Panel title="State">
              <Json value={run.state} label="State" />
            </Panel>
          )}
          <Panel title="Input">
            <Json value={run.input} label="Input" />
          </Panel>
        </div>
        <div class="column">
          <Panel title="Facts">
            <Facts run={run} />
          </Panel>
          <Panel title="As code">
            <AsCode run={run} />
          </Panel>
        </div>
      </div>
      {children.runs.length > 0 && (
        <Panel
          title="Children"
          flush
          note={<a href={pageAt("runs", { parentId: run.runId })}>Filter and page through them</a>}
        >
          <RunTable runs={children.runs.slice(0, 20)} label="Children" />
        </Panel>
      )}
    </Page>
  );
}

function Story({
  run,
  steps,
  children,
}: {
  run: Run;
  steps: readonly Step[];
  children: readonly Run[];
}): JSX.Element {
  const fromMs = Date.parse(run.startedAt);
  const endMs = run.completedAt === null ? now.value : Date.parse(run.completedAt);
  const isJournal = run.kind === "workflow" || steps.length > 0;
  const rows = useMemo(
    () => (isJournal ? rowsOfSteps(steps, run, endMs) : rowsOfRun(run, children, endMs)),
    [run, steps, children, endMs],
  );
  const last = rows.reduce((latest, { toMs }) => Math.max(latest, toMs), endMs);
  return (
    <Panel
      title={isJournal ? "Steps" : "Timeline"}
      note={`${isJournal ? `${plural(rows.length, "step")} in ` : ""}${duration(last - fromMs)}`}
      flush
    >
      {rows.length === 0 ? (
        <Empty title="No step has begun yet" />
      ) : (
        <Waterfall rows={rows} fromMs={fromMs} toMs={last} />
      )}
    </Panel>
  );
}

/** A workflow begins again with any step of its journal, a machine with its present one. */
function stepsOf({ run, steps }: Story): string[] {
  if (run.kind === "machine") return run.step === null ? [] : [run.step];
  return steps.slice(0, 200).map(({ name }) => name);
}

async function readStory(runId: string, signal: AbortSignal): Promise<Story> {
  const path = `v1/runs/${encodeURIComponent(runId)}`;
  const [run, why, children, steps] = await Promise.all([
    call<Run>(path, { signal }),
    call<Why>(`${path}/why`, { signal }),
    call<Runs>("v1/runs", { signal, query: { parentId: runId, limit: 100 } }).catch(noneIfForbidden),
    readSteps(path, signal),
  ]);
  return { run, why, children, steps };
}

/** A token for some names may not list the children, which can have any name. */
function noneIfForbidden(error: unknown): Runs {
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
