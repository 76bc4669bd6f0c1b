/** All definitions: jobs, machines and workflows, with their versions, workers and failures. */

import type { JSX } from "preact";
import { call, callText } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Definition, DefinitionPage, FailureGroup, Pause } from "../api/types.js";
import { readMetrics } from "../format/metrics.js";
import { number, plural } from "../format/number.js";
import { icons } from "../parts/icons.js";
import { Await, NextPage, Page } from "../parts/page.js";
import { PausedBy } from "../parts/paused-by.js";
import { PauseButton } from "../parts/pause-buttons.js";
import { Badge } from "../parts/status.js";
import { FirstRun, StartButton } from "./start.js";

const freshMs = 10_000;

/** The versions of one name; none if no worker has registered it. */
interface Named {
  readonly name: string;
  /** The newest first. */
  readonly versions: readonly Definition[];
  readonly failed: number;
}

export function DefinitionsPage(): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `definitions ${cursor ?? ""}`,
    (signal) => read(cursor, signal),
    () => freshMs,
  );
  return (
    <Page title="Definitions" actions={<StartButton />}>
      <section class="panel flush" aria-label="Definitions">
        <Await loaded={loaded} lines={8}>
          {({ named, pauses, cursor: next }) => (
            <>
              {named.length === 0 ? (
                <FirstRun />
              ) : (
                <Table named={named} pauses={pauses} onDone={loaded.reload} />
              )}
              <NextPage href={next && pageAt("definitions", { cursor: next })}>More</NextPage>
            </>
          )}
        </Await>
      </section>
    </Page>
  );
}

async function read(
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<{ named: Named[]; pauses: readonly Pause[]; cursor: string | null }> {
  const [page, { failures }, { pauses }, text] = await Promise.all([
    call<DefinitionPage>("v1/definitions", { signal, query: { cursor } }),
    call<{ failures: readonly FailureGroup[] }>("v1/failures", { signal, query: { limit: 200 } }),
    call<{ pauses: readonly Pause[] }>("v1/pauses", { signal }),
    callText("metrics", { signal }),
  ]);
  const names = new Set(page.definitions.map(({ name }) => name));
  if (cursor === undefined) {
    // Runs of these wait, whether or not a worker has ever registered them.
    for (const { labels } of readMetrics(text).get("pawl_unserved_runs") ?? [])
      names.add(labels["workflow"] ?? "");
  }
  const named = [...names].toSorted().map((name) => ({
    name,
    versions: page.definitions.filter((one) => one.name === name).toSorted((a, b) => b.version - a.version),
    failed: failures.reduce((sum, one) => (one.name === name ? sum + one.count : sum), 0),
  }));
  return { named, pauses: pauses.filter(({ scope }) => scope === "definition"), cursor: page.cursor };
}

function Table(props: {
  named: readonly Named[];
  pauses: readonly Pause[];
  onDone: () => void;
}): JSX.Element {
  const { named, pauses, onDone } = props;
  const pauseOf = (name: string): Pause | undefined => pauses.find((pause) => pause.name === name);
  return (
    <div class="table-room">
      <table class="wide" aria-label="Definitions">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col">Versions</th>
            <th scope="col">Queue</th>
            <th scope="col">Live workers</th>
            <th scope="col" class="right">
              Failed in 24 h
            </th>
            <th scope="col">
              <span class="unseen">Pause</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {named.map(({ name, versions, failed }) => (
            <tr key={name}>
              <td>
                <a class="run-link" href={pageAt(`definitions/${encodeURIComponent(name)}`)}>
                  {name}
                </a>
                <PausedBy pause={pauseOf(name)} />
              </td>
              <td>{versions[0]?.kind ?? <span class="muted">unknown</span>}</td>
              <td>{versions.map(({ version }) => `v${version}`).join(", ") || "–"}</td>
              <td>{versions[0]?.queue ?? "–"}</td>
              <td>
                <Workers versions={versions} />
              </td>
              <td class="right number">
                {failed === 0 ? (
                  <span class="muted">0</span>
                ) : (
                  <a
                    class="count is-failed"
                    href={pageAt("runs", { name, status: "failed", started: "24h" })}
                  >
                    {icons.failed}
                    {number(failed)}
                  </a>
                )}
              </td>
              <td class="right">
                <PauseButton
                  kind="definition"
                  name={name}
                  isPaused={pauseOf(name) !== undefined}
                  onDone={onDone}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Workers({ versions }: { versions: readonly Definition[] }): JSX.Element {
  const served = versions.filter(({ workers }) => workers > 0);
  if (served.length === 0) return <Badge look="failed" text="None" />;
  return (
    <span class="served">
      {served.map(({ version, workers }) => (
        <span key={version}>
          {versions.length > 1 && <span class="muted">v{version} </span>}
          {plural(workers, "worker")}
        </span>
      ))}
    </span>
  );
}
