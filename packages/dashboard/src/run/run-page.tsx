/**
 * One run: why it is where it is and what to do about it, its story as a waterfall, and its values.
 */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ApiProblem, call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { DefinitionPage, Run } from "../api/types.js";
import { graphOf, MachineDrawing } from "../graph/drawing.js";
import { Json } from "../parts/json.js";
import { Empty, Page, Panel, Problem, Skeleton } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { lookOf, RunBadge } from "../parts/status.js";
import { AsCode } from "./as-code.js";
import { ErrorView } from "./error-view.js";
import { Facts } from "./facts.js";
import { Headline } from "./headline.js";
import { type ExplainedStory, readExplained, type RunStory } from "./read.js";
import { Remedies } from "./remedies.js";
import { Story } from "./story.js";

const runningMs = 2_000;
const endedMs = 15_000;
/** A long journal is read whole: not so often. */
const longJournal = 1_000;
const longMs = 10_000;

export function RunPage({ runId }: { runId: string }): JSX.Element {
  const loaded = usePolled(
    `run ${runId}`,
    (aborted) => readExplained(runId, aborted),
    (story) => paceOf(story),
    { runId },
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
  const { run, why, children } = data;
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
      <Story story={data} />
      {run.kind === "machine" && <MachinePanel run={run} />}
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
            <AsCode run={run} why={why} />
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

function paceOf(story: ExplainedStory | undefined): number {
  if (story === undefined || story.run.status !== "running") return endedMs;
  return story.steps.length > longJournal ? longMs : runningMs;
}

const atOf = ({ status, phase }: Run): string =>
  status !== "running" ? "ended in" : phase.startsWith("awaiting") ? "waits, then executes" : "is at";

/** The machine, with the present step of this run. */
function MachinePanel({ run }: { run: Run }): JSX.Element | null {
  const { data } = usePolled(
    `machine ${run.name}`,
    (signal) => call<DefinitionPage>("v1/definitions", { signal, query: { name: run.name } }),
    () => null,
  );
  const declared = data?.definitions.find(({ version }) => version === run.version)?.declared ?? {};
  const graph = useMemo(() => graphOf(declared), [data]);
  if (graph === null) return null;
  const { step } = run;
  return (
    <Panel title="Machine" flush note={step === null ? undefined : `${atOf(run)} ${step}`}>
      <MachineDrawing graph={graph} {...(step === null ? {} : { present: { step, look: lookOf(run) } })} />
    </Panel>
  );
}

/** A workflow begins again with any step of its journal, a machine with its present one. */
function stepsOf({ run, steps }: RunStory): string[] {
  if (run.kind === "machine") return run.step === null ? [] : [run.step];
  return steps.slice(0, 200).map(({ name }) => name);
}
