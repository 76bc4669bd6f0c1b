/** Is all well? Counts of now, whatever needs attention, failures in groups, and the latest runs. */

import type { ComponentChildren, JSX } from "preact";
import { call, callText } from "../api/client.js";
import { now } from "../api/clock.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { FailureGroup, RunPage } from "../api/types.js";
import { type Metrics, readMetrics, total } from "../format/metrics.js";
import { number, plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { icons } from "../parts/icons.js";
import { Await, Page, Panel } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { Time } from "../parts/time.js";
import { Charts } from "./charts.js";
import { FirstRun, StartButton } from "./start.js";

const freshMs = 5_000;
const dayMs = 86_400_000;
const shownFailures = 20;
/** The server stops counting a backlog there. */
const maxCounted = 10_000;

interface Now {
  readonly metrics: Metrics;
  readonly failures: readonly FailureGroup[];
  readonly latest: RunPage;
}

export function OverviewPage(): JSX.Element {
  const loaded = usePolled("overview", readNow, () => freshMs, {});
  return (
    <Page title="Overview" actions={<StartButton />}>
      <Await loaded={loaded} lines={10}>
        {(data) =>
          data.latest.runs.length === 0 ? (
            <section class="panel">
              <FirstRun />
            </section>
          ) : (
            <Health {...data} />
          )
        }
      </Await>
    </Page>
  );
}

function Health({ metrics, failures, latest }: Now): JSX.Element {
  const due = total(metrics, "pawl_queue_depth");
  const oldest = Math.max(0, ...(metrics.get("pawl_queue_age_seconds") ?? []).map(({ value }) => value));
  const failed = failures.reduce((sum, { count }) => sum + count, 0);
  return (
    <>
      <div class="figures">
        <Figure
          label="Live workers"
          value={total(metrics, "pawl_workers")}
          look={total(metrics, "pawl_workers") === 0 ? "failed" : ""}
        />
        <Figure
          label="Executing"
          value={total(metrics, "pawl_executing_runs")}
          href={pageAt("runs", { status: "running", phase: "executing" })}
        />
        <Figure
          label="Due now"
          value={due}
          isLeast={due >= maxCounted}
          note={due > 0 ? `oldest ${duration(oldest * 1_000)}` : "no backlog"}
          href={pageAt("queues")}
        />
        {metrics.has("pawl_blocked_runs") && (
          <Figure label="Behind a key" value={total(metrics, "pawl_blocked_runs")} note="waiting in line" />
        )}
        <Figure
          label="Throttled"
          value={total(metrics, "pawl_throttled_runs")}
          href={pageAt("limits")}
          note="by rate limits"
        />
        <Figure
          label="Failed"
          value={failed}
          look={failed > 0 ? "failed" : ""}
          note="in 24 hours"
          href={pageAt("runs", { status: "failed", started: "24h" })}
        />
      </div>
      <Attention metrics={metrics} oldestSeconds={oldest} due={due} />
      <Charts />
      <Failures groups={failures.slice(0, shownFailures)} />
      <Panel title="Latest runs" flush note={<a href={pageAt("runs")}>All runs</a>}>
        <RunTable runs={latest.runs} label="Latest runs" />
      </Panel>
    </>
  );
}

function Figure(props: {
  label: string;
  value: number;
  note?: string;
  href?: string;
  look?: string;
  /** Counting stopped there. */
  isLeast?: boolean;
}): JSX.Element {
  const { label, value, note, href, look = "", isLeast = false } = props;
  const content = (
    <>
      <span class="figure-label">{label}</span>
      <span class="figure-value">
        {number(value)}
        {isLeast && "+"}
      </span>
      <span class="figure-note">{note ?? "\u00a0"}</span>
    </>
  );
  const name = `figure ${look === "" ? "" : `is-${look}`}`;
  return href === undefined ? (
    <div class={name}>{content}</div>
  ) : (
    <a class={name} href={href}>
      {content}
    </a>
  );
}

function Attention(props: { metrics: Metrics; oldestSeconds: number; due: number }): JSX.Element | null {
  const { metrics, oldestSeconds, due } = props;
  const items: ComponentChildren[] = (metrics.get("pawl_unserved_runs") ?? [])
    .filter(({ value }) => value > 0)
    .map(({ labels: { workflow = "", version = "" }, value }) => (
      <>
        <a href={pageAt("runs", { name: workflow, version, status: "running" })}>{plural(value, "run")}</a> of{" "}
        <code>
          {workflow}@{version}
        </code>{" "}
        {value === 1 ? "waits" : "wait"}, because no live worker serves {value === 1 ? "it" : "them"}.
      </>
    ));
  if (total(metrics, "pawl_workers") === 0)
    items.unshift(
      <>
        No worker is alive: nothing is executed. Start one with <code>serve([…])</code> or{" "}
        <code>npx pawl dev --watch definitions.ts</code>.
      </>,
    );
  else if (due > 0 && oldestSeconds > 60)
    items.push(
      <>
        The oldest due run has waited {duration(oldestSeconds * 1_000)}. All slots may be taken:{" "}
        <a href={pageAt("queues")}>see the queues</a>.
      </>,
    );
  if (items.length === 0) return null;
  return (
    <Panel title="Needs attention">
      <ul class="attention">
        {items.map((item, index) => (
          <li key={index}>
            {icons.failed}
            <span>{item}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Failures({ groups }: { groups: readonly FailureGroup[] }): JSX.Element {
  return (
    <Panel title="Failures" flush={groups.length > 0} note="in the last 24 hours, the most frequent first">
      {groups.length === 0 ? (
        <p class="calm">
          <span class="is-completed">{icons.completed}</span> No run has failed.
        </p>
      ) : (
        <div class="table-room">
          <table aria-label="Failures in groups">
            <thead>
              <tr>
                <th scope="col" class="right">
                  Runs
                </th>
                <th scope="col">Definition</th>
                <th scope="col">Error</th>
                <th scope="col" class="right first-cell">
                  First
                </th>
                <th scope="col" class="right">
                  Last
                </th>
              </tr>
            </thead>
            <tbody>
              {groups.map((group) => (
                <tr key={`${group.name} ${group.code} ${group.step ?? ""}`}>
                  <td class="right number">{number(group.count)}</td>
                  <td>
                    <a
                      class="run-link"
                      href={pageAt("runs", { status: "failed", name: group.name, error: group.code })}
                    >
                      {group.name}
                    </a>
                    {group.step !== null && <span class="muted"> in {group.step}</span>}
                  </td>
                  <td class="message-cell">
                    <code>{group.code}</code>{" "}
                    <a
                      class="error-line"
                      href={pageAt(`runs/${group.lastRunId}`)}
                      title={group.message ?? ""}
                    >
                      {group.message}
                    </a>
                  </td>
                  <td class="right nowrap first-cell">
                    <Time at={group.firstAt} />
                  </td>
                  <td class="right nowrap">
                    <Time at={group.lastAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

async function readNow(signal: AbortSignal): Promise<Now> {
  const since = new Date(now.peek() - dayMs).toISOString();
  const [text, { failures }, latest] = await Promise.all([
    callText("metrics", { signal }),
    call<{ failures: readonly FailureGroup[] }>("v1/failures", { signal, query: { since, limit: 200 } }),
    call<RunPage>("v1/runs", { signal, query: { limit: 8 } }),
  ]);
  return { metrics: readMetrics(text), failures, latest };
}
