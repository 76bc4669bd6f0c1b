/** One bulk operation: its progress, the runs that failed it, and stopping it. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt } from "../api/router.js";
import type { BulkOperation, BulkResult } from "../api/types.js";
import { cli } from "../format/command.js";
import { number, plural } from "../format/number.js";
import { ActButton } from "../parts/act-button.js";
import { Json } from "../parts/json.js";
import { Await, Page, Panel } from "../parts/page.js";
import { Badge, type Look } from "../parts/status.js";
import { Time } from "../parts/time.js";

const workingMs = 1_000;
const endedMs = 30_000;

const looks: Readonly<Record<BulkOperation["status"], readonly [Look, string]>> = {
  working: ["executing", "Working"],
  completed: ["completed", "Completed"],
  stopped: ["cancelled", "Stopped"],
  failed: ["failed", "Failed"],
};

export function BulkPage({ id }: { id: string }): JSX.Element {
  const path = `v1/bulk/${encodeURIComponent(id)}`;
  const loaded = usePolled(
    `bulk ${id}`,
    async (signal) => {
      const operation = await call<BulkOperation>(path, { signal });
      const { results } = await call<{ results: readonly BulkResult[] }>(`${path}/results`, {
        signal,
        query: { outcome: "failed", limit: 50 },
      });
      return { operation, results };
    },
    (data) => (data?.operation.status === "working" || data === undefined ? workingMs : endedMs),
  );
  return (
    <Page title={`Bulk operation ${id}`}>
      <Await loaded={loaded}>
        {({ operation, results }) => {
          const { action, status, counted, done, skipped, failed, error, who, startedAt } = operation;
          const [look, text] = looks[status];
          const over = done + skipped + failed;
          return (
            <>
              <section class={`why is-${look}`} aria-label="Progress">
                <p class="headline">
                  <Badge look={look} text={text} />: <code>{action}</code> of {plural(counted, "run")}, by{" "}
                  {who}, <Time at={startedAt} />.
                </p>
                <progress max={Math.max(1, counted)} value={over} aria-label="Progress">
                  {number(over)}
                </progress>
                <p>
                  {number(done)} done, {number(skipped)} skipped, {number(failed)} failed, of{" "}
                  {number(counted)}.
                </p>
                {error !== null && <p class="refused">{error}</p>}
                {status === "working" && (
                  <div class="remedies">
                    <ActButton
                      label="Stop…"
                      scope="admin"
                      isDangerous
                      title={`Stop the bulk operation ${id}?`}
                      verb="Stop it"
                      consequence="Runs that it has not reached stay as they are."
                      command={() => cli("bulk", "stop", id)}
                      path={path}
                      method="DELETE"
                      onDone={loaded.reload}
                    />
                  </div>
                )}
              </section>
              <Panel title="Filters">
                <Json value={operation.where} label="Filters" />
              </Panel>
              {results.length > 0 && (
                <Panel title="Runs that failed it" note="at most 50" flush>
                  <div class="table-room">
                    <table aria-label="Runs that failed it">
                      <tbody>
                        {results.map(({ runId, reason }) => (
                          <tr key={runId}>
                            <td>
                              <a class="run-link" href={pageAt(`runs/${runId}`)}>
                                #{runId}
                              </a>
                            </td>
                            <td class="error-line">{reason}</td>
                          </tr>
                        ))}
                      </tbody>
                    </table>
                  </div>
                </Panel>
              )}
            </>
          );
        }}
      </Await>
    </Page>
  );
}
