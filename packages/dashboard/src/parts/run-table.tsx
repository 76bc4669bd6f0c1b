/** A table of runs. On a phone each row becomes a card. */

import type { JSX } from "preact";
import { pageAt } from "../api/router.js";
import type { Run } from "../api/types.js";
import { preview } from "../format/json.js";
import { RunBadge } from "./status.js";
import { Time, Took } from "./time.js";

export function RunTable({ runs, label }: { runs: readonly Run[]; label: string }): JSX.Element {
  return (
    <div class="table-room">
      <table class="runs" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Status</th>
            <th scope="col">Detail</th>
            <th scope="col">Input</th>
            <th scope="col" class="right">
              Started
            </th>
            <th scope="col" class="right">
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.runId}>
              <td class="run-cell">
                <a class="run-link" href={pageAt(`runs/${run.runId}`)}>
                  {run.name}
                </a>
                <span class="muted">
                  {run.version > 1 && `v${run.version} · `}#{run.runId}
                </span>
              </td>
              <td>
                <RunBadge run={run} />
              </td>
              <td class="now-cell">
                <NowAt run={run} />
              </td>
              <td class="input-cell">
                <code>{preview(run.input, 60)}</code>
              </td>
              <td class="right nowrap">
                <Time at={run.startedAt} />
              </td>
              <td class="right nowrap">
                <Took from={run.startedAt} to={run.completedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The step of a machine, the attempt, or the error. */
function NowAt({ run }: { run: Run }): JSX.Element | null {
  if (run.status === "failed" && run.error !== null) {
    return (
      <span class="error-line" title={run.error.message}>
        {run.error.message}
      </span>
    );
  }
  const attempt = run.attempt > 0 && run.status === "running" ? `attempt ${run.attempt + 1}` : "";
  const step = run.kind === "machine" && run.status === "running" ? (run.step ?? "") : "";
  const text = [step, attempt].filter((part) => part !== "").join(", ");
  return text === "" ? null : <span>{text}</span>;
}
