/** Workers and versions: who is alive and executes what, and who serves each definition. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { now } from "../api/clock.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Worker, Workers } from "../api/types.js";
import { number, plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { Code } from "../parts/copy.js";
import { Await, Empty, NextPage, Page, Panel } from "../parts/page.js";
import { Badge } from "../parts/status.js";
import { Time } from "../parts/time.js";

const freshMs = 5_000;
/** More definitions of one worker are behind a number. */
const shownServed = 6;

export function WorkersPage(): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `workers ${cursor ?? ""}`,
    (signal) =>
      call<Workers>("v1/workers", {
        signal,
        query: { cursor },
      }),
    () => freshMs,
  );
  return (
    <Page title="Workers">
      <Await loaded={loaded} lines={8}>
        {({ workers, cursor: next }) =>
          workers.length === 0 ? (
            <section class="panel">
              <Empty title="No worker">
                <p>A worker is your program: it executes the runs of the definitions that it serves.</p>
                <Code
                  text={
                    'import { serve } from "pawl";\nimport { signup } from "./definitions.js";\n\nserve([signup]);'
                  }
                  label="A worker"
                />
                <Code text="npx pawl dev --watch definitions.ts" label="A worker for development" />
              </Empty>
            </section>
          ) : (
            <>
              <Panel title="All workers" note={aliveNote(workers, next !== null)} flush>
                <Table workers={workers} />
                <NextPage href={next && pageAt("workers", { cursor: next })}>More</NextPage>
              </Panel>
              <Versions workers={workers} />
            </>
          )
        }
      </Await>
    </Page>
  );
}

function aliveNote(workers: readonly Worker[], isPartial: boolean): string {
  const alive = workers.filter((worker) => worker.alive).length;
  const claims = workers.reduce((sum, worker) => sum + worker.claims, 0);
  return `${number(alive)} of ${number(workers.length)} alive${isPartial ? " on this page" : ""}, with ${plural(claims, "run")}`;
}

function Table({ workers }: { workers: readonly Worker[] }): JSX.Element {
  return (
    <div class="table-room">
      <table class="wide" aria-label="Workers">
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">Lease</th>
            <th scope="col">Serves</th>
            <th scope="col">Queues</th>
            <th scope="col" class="right">
              Runs
            </th>
            <th scope="col" class="right">
              Up for
            </th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.id}>
              <td>
                <span class="run-link">{worker.host ?? "unknown host"}</span>
                {worker.pid !== null && <span class="muted"> pid {worker.pid}</span>}
                <p class="muted small">
                  <code title={worker.id}>…{worker.id.slice(-8)}</code>
                  {worker.runtime !== null && ` · ${worker.runtime}`}
                  {worker.token !== null && ` · token ${worker.token}`}
                </p>
              </td>
              <td class="nowrap">
                <Badge
                  look={worker.alive ? "completed" : "failed"}
                  text={worker.alive ? "Alive" : "Lease ended"}
                />
                <p class="muted small">
                  seen <Time at={worker.seenAt} />, lease {duration(worker.leaseMs)}
                </p>
              </td>
              <td class="serves-cell">
                <Served worker={worker} />
              </td>
              <td>{worker.queues.join(", ")}</td>
              <td class="right number">{worker.claims >= 1_000 ? "1,000+" : number(worker.claims)}</td>
              <td class="right nowrap number" title={worker.registeredAt}>
                {duration(Math.max(1_000, now.value - Date.parse(worker.registeredAt)))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Served({ worker: { serves } }: { worker: Worker }): JSX.Element {
  return (
    <span class="served">
      {serves.slice(0, shownServed).map(({ name, version }) => (
        <a key={`${name}@${version}`} href={pageAt(`definitions/${encodeURIComponent(name)}`)}>
          {name}
          <span class="muted">@{version}</span>
        </a>
      ))}
      {serves.length > shownServed && (
        <span class="muted" title={serves.map(({ name, version }) => `${name}@${version}`).join(", ")}>
          and {number(serves.length - shownServed)} more
        </span>
      )}
    </span>
  );
}

/** The versions of each definition that live workers serve. */
function Versions({ workers }: { workers: readonly Worker[] }): JSX.Element {
  const served = new Map<string, Map<number, number>>();
  for (const { serves, alive } of workers) {
    if (!alive) continue;
    for (const { name, version } of serves) {
      const versions = served.get(name) ?? new Map<number, number>();
      versions.set(version, (versions.get(version) ?? 0) + 1);
      served.set(name, versions);
    }
  }
  const rows = [...served].toSorted(([a], [b]) => a.localeCompare(b));
  return (
    <Panel title="Versions" note="that live workers serve" flush>
      <div class="table-room">
        <table aria-label="Versions that live workers serve">
          <thead>
            <tr>
              <th scope="col">Definition</th>
              <th scope="col">Versions</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, versions]) => (
              <tr key={name}>
                <td>
                  <a class="run-link" href={pageAt(`definitions/${encodeURIComponent(name)}`)}>
                    {name}
                  </a>
                </td>
                <td>
                  <span class="served">
                    {[...versions]
                      .toSorted(([a], [b]) => b - a)
                      .map(([version, count]) => (
                        <span key={version}>
                          <b>v{version}</b> <span class="muted">on {plural(count, "worker")}</span>
                        </span>
                      ))}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
