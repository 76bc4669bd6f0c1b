/** Queues: how many runs are due in each and for how long, and the queues of messages. */

import type { JSX } from "preact";
import { call, callText } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { Pause, QueueStats } from "../api/types.js";
import { type Metrics, readMetrics, type Sample } from "../format/metrics.js";
import { number } from "../format/number.js";
import { duration } from "../format/time.js";
import { PausedBy } from "../parts/paused-by.js";
import { PauseButton } from "../parts/pause-buttons.js";
import { Await, Empty, Page, Panel } from "../parts/page.js";

const freshMs = 5_000;

export function QueuesPage(): JSX.Element {
  const loaded = usePolled(
    "queues",
    async (signal) => {
      const [text, { queues }, { pauses }] = await Promise.all([
        callText("metrics", { signal }),
        call<{ queues: readonly QueueStats[] }>("v1/queues", { signal }),
        call<{ pauses: readonly Pause[] }>("v1/pauses", { signal }),
      ]);
      return { metrics: readMetrics(text), queues, pauses: pauses.filter(({ scope }) => scope === "queue") };
    },
    () => freshMs,
  );
  return (
    <Page title="Queues">
      <Await loaded={loaded} lines={8}>
        {({ metrics, queues, pauses }) => (
          <>
            <Backlog metrics={metrics} pauses={pauses} onDone={loaded.reload} />
            <Messages queues={queues} />
          </>
        )}
      </Await>
    </Page>
  );
}

function Backlog(props: { metrics: Metrics; pauses: readonly Pause[]; onDone: () => void }): JSX.Element {
  const { metrics, pauses, onDone } = props;
  const pauseOf = (name: string): Pause | undefined => pauses.find((pause) => pause.name === name);
  const ages = new Map(
    (metrics.get("pawl_queue_age_seconds") ?? []).map(({ labels, value }) => [labels["queue"], value]),
  );
  const counted = metrics.get("pawl_queue_depth") ?? [];
  const missing = pauses.filter(({ name }) => !counted.some(({ labels }) => labels["queue"] === name));
  const depths: readonly Sample[] = [
    ...counted,
    ...missing.map(({ name }) => ({ labels: { queue: name }, value: 0 })),
  ];
  const most = Math.max(1, ...depths.map(({ value }) => value));
  return (
    <Panel
      title="Runs that are due"
      note="and wait for a worker; read every 10 seconds"
      flush={depths.length > 0}
    >
      {depths.length === 0 ? (
        <Empty title="No backlog">
          <p>Workers have claimed every run that is due.</p>
        </Empty>
      ) : (
        <div class="table-room">
          <table aria-label="Queues of runs">
            <thead>
              <tr>
                <th scope="col">Queue</th>
                <th scope="col" class="shares-cell">
                  Share
                </th>
                <th scope="col" class="right">
                  Due
                </th>
                <th scope="col" class="right">
                  Oldest
                </th>
                <th scope="col">
                  <span class="unseen">Pause</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {depths.map(({ labels: { queue = "" }, value }) => (
                <tr key={queue}>
                  <td>
                    <a class="run-link" href={pageAt("runs", { queue, phase: "runnable" })}>
                      {queue}
                    </a>
                    <PausedBy pause={pauseOf(queue)} />
                  </td>
                  <td class="shares-cell">
                    <span class="meter" aria-hidden="true">
                      <span style={{ width: `${(value / most) * 100}%` }} />
                    </span>
                  </td>
                  <td class="right number">{number(value)}</td>
                  <td class="right number">{value === 0 ? "–" : duration((ages.get(queue) ?? 0) * 1_000)}</td>
                  <td class="right">
                    <PauseButton
                      kind="queue"
                      name={queue}
                      isPaused={pauseOf(queue) !== undefined}
                      onDone={onDone}
                    />
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

function Messages({ queues }: { queues: readonly QueueStats[] }): JSX.Element {
  return (
    <Panel title="Messages" note="in queues with messages" flush={queues.length > 0}>
      {queues.length === 0 ? (
        <Empty title="No messages">
          <p>
            Programs send messages with <code>pawl.queues.send(queue, body)</code> and receive them with{" "}
            <code>pawl.queues.receive(queue)</code>.
          </p>
        </Empty>
      ) : (
        <div class="table-room">
          <table aria-label="Queues of messages">
            <thead>
              <tr>
                <th scope="col">Queue</th>
                <th scope="col" class="right">
                  Visible
                </th>
                <th scope="col" class="right">
                  In flight
                </th>
                <th scope="col" class="right">
                  Delayed
                </th>
                <th scope="col" class="right">
                  Oldest
                </th>
              </tr>
            </thead>
            <tbody>
              {queues.map(({ queue, visible, inFlight, delayed, oldestMs }) => (
                <tr key={queue}>
                  <td>{queue}</td>
                  <td class="right number">{number(visible)}</td>
                  <td class="right number">{number(inFlight)}</td>
                  <td class="right number">{number(delayed)}</td>
                  <td class="right number">{oldestMs === null ? "–" : duration(oldestMs)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
