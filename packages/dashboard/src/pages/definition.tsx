/** One definition: its versions, the drawing of a machine, and its latest runs. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Definition, DefinitionPage as Definitions, MachineGraph, RunPage } from "../api/types.js";
import { plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { graphOf, MachineDrawing } from "../graph/drawing.js";
import { type Fact, FactList } from "../parts/fact-list.js";
import { Await, Empty, Page, Panel } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { Badge } from "../parts/status.js";
import { Time } from "../parts/time.js";
import { StartButton } from "./start.js";

const freshMs = 10_000;

export function DefinitionPage({ name }: { name: string }): JSX.Element {
  const loaded = usePolled(
    `definition ${name}`,
    async (signal) => {
      const [{ definitions }, { runs }] = await Promise.all([
        call<Definitions>("v1/definitions", { signal, query: { name } }),
        call<RunPage>("v1/runs", { signal, query: { name, limit: 8 } }),
      ]);
      return { versions: definitions.toSorted((a, b) => b.version - a.version), runs };
    },
    () => freshMs,
    { name },
  );
  return (
    <Page title={name} actions={<StartButton name={name} />}>
      <Await loaded={loaded} lines={8}>
        {({ versions, runs }) => (
          <>
            {versions.length === 0 ? (
              <section class="panel">
                <Empty title="No worker has served it">
                  <p>
                    Runs of {name} wait until a worker serves it: <code>serve([…])</code>.
                  </p>
                </Empty>
              </section>
            ) : (
              <Versions versions={versions} />
            )}
            {runs.length > 0 && (
              <Panel title="Latest runs" flush note={<a href={pageAt("runs", { name })}>All runs of it</a>}>
                <RunTable runs={runs} label="Latest runs" />
              </Panel>
            )}
          </>
        )}
      </Await>
    </Page>
  );
}

function Versions({ versions }: { versions: readonly Definition[] }): JSX.Element {
  const asked = Number(query.value.get("version"));
  const shown = versions.find(({ version }) => version === asked) ?? versions[0]!;
  const graph = graphOf(shown.declared);
  return (
    <>
      {versions.length > 1 && (
        <div class="segments" role="group" aria-label="Version">
          {versions.map(({ name, version }) => (
            <a
              key={version}
              href={pageAt(`definitions/${encodeURIComponent(name)}`, { version: String(version) })}
              aria-current={version === shown.version ? "true" : undefined}
            >
              v{version}
            </a>
          ))}
        </div>
      )}
      {shown.kind === "machine" && <Drawing graph={graph} />}
      <Panel title={`Version ${shown.version}`}>
        <Facts definition={shown} />
      </Panel>
    </>
  );
}

function Drawing({ graph }: { graph: MachineGraph | null }): JSX.Element {
  return (
    <Panel
      title="Steps"
      note={graph === null ? undefined : plural(graph.steps.length, "step")}
      flush={graph !== null}
    >
      {graph === null ? (
        <Empty title="No drawing yet">
          <p>A worker tells its steps when it registers. Start one with this release of Pawl.</p>
        </Empty>
      ) : (
        <>
          <MachineDrawing graph={graph} />
          {graph.onError.length > 0 && (
            <p class="drawing-note muted">
              After an error, <code>handle</code> continues with {graph.onError.join(" or ")}.
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

function Facts({ definition }: { definition: Definition }): JSX.Element {
  const { kind, queue, priority, retentionMs, timeoutMs, registeredAt, workers } = definition;
  const facts: Fact[] = [
    [
      "Workers",
      workers > 0 ? (
        <a href={pageAt("workers")}>{plural(workers, "live worker")}</a>
      ) : (
        <Badge look="failed" text="No live worker serves it" />
      ),
    ],
    ["Kind", kind],
    ["Queue", <a href={pageAt("runs", { queue })}>{queue}</a>],
    ["Kept for", `${duration(retentionMs)} after the end`],
    ["Registered", <Time at={registeredAt} />],
  ];
  if (priority !== 0) facts.push(["Priority", String(priority)]);
  if (timeoutMs !== null) facts.push(["Timeout", duration(timeoutMs)]);
  return <FactList facts={facts} />;
}
