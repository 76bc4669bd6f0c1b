/** All definitions: jobs, machines and workflows, with how their runs are. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { Pause, Workflow } from "../api/types.js";
import { number } from "../format/number.js";
import { icons } from "../parts/icons.js";
import { Await, Page } from "../parts/page.js";
import { PausedBy } from "../parts/paused-by.js";
import { PauseButton } from "../parts/pause-buttons.js";
import { FirstRun, StartButton } from "./start.js";
import { statuses } from "./filters.js";

/** The server counts every run for this. */
const freshMs = 60_000;

export function DefinitionsPage(): JSX.Element {
  const loaded = usePolled(
    "definitions",
    async (signal) => {
      const [{ workflows }, { pauses }] = await Promise.all([
        call<{ workflows: readonly Workflow[] }>("v1/workflows", { signal }),
        call<{ pauses: readonly Pause[] }>("v1/pauses", { signal }),
      ]);
      return { workflows, pauses: pauses.filter(({ scope }) => scope === "definition") };
    },
    () => freshMs,
  );
  return (
    <Page title="Definitions" actions={<StartButton />}>
      <section class="panel flush" aria-label="Definitions">
        <Await loaded={loaded} lines={8}>
          {({ workflows, pauses }) =>
            workflows.length === 0 ? (
              <FirstRun />
            ) : (
              <Table workflows={workflows} pauses={pauses} onDone={loaded.reload} />
            )
          }
        </Await>
      </section>
    </Page>
  );
}

function Table(props: {
  workflows: readonly Workflow[];
  pauses: readonly Pause[];
  onDone: () => void;
}): JSX.Element {
  const { workflows, pauses, onDone } = props;
  const pauseOf = (name: string): Pause | undefined => pauses.find((pause) => pause.name === name);
  return (
    <div class="table-room">
      <table aria-label="Definitions and their runs">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" class="shares-cell">
              Shares
            </th>
            {statuses.map((status) => (
              <th scope="col" class="right" key={status}>
                {status.slice(0, 1).toUpperCase() + status.slice(1)}
              </th>
            ))}
            <th scope="col">
              <span class="unseen">Pause</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {workflows.map(({ name, counts }) => (
            <tr key={name}>
              <td>
                <a class="run-link" href={pageAt(`definitions/${encodeURIComponent(name)}`)}>
                  {name}
                </a>
                <PausedBy pause={pauseOf(name)} />
              </td>
              <td class="shares-cell">
                <Shares counts={counts} />
              </td>
              {statuses.map((status) => (
                <td class="right number" key={status}>
                  {counts[status] === 0 ? (
                    <span class="muted">0</span>
                  ) : (
                    <a
                      class={`count is-${status === "running" ? "executing" : status}`}
                      href={pageAt("runs", { name, status })}
                    >
                      {icons[status === "running" ? "executing" : status]}
                      {number(counts[status])}
                    </a>
                  )}
                </td>
              ))}
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

function Shares({ counts }: { counts: Workflow["counts"] }): JSX.Element {
  const all = statuses.reduce((sum, status) => sum + counts[status], 0);
  return (
    <span class="shares" aria-hidden="true">
      {statuses.map((status) =>
        counts[status] === 0 ? null : (
          <span
            key={status}
            class={`is-${status === "running" ? "executing" : status}`}
            style={{ flexGrow: String(counts[status] / all) }}
          />
        ),
      )}
    </span>
  );
}
