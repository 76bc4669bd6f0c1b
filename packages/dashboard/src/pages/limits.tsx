/** Limits, of rates and of runs at once: list them, and change or add one for all workers. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, callText } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Limit } from "../api/types.js";
import { cli } from "../format/command.js";
import { readMetrics } from "../format/metrics.js";
import { number } from "../format/number.js";
import { duration } from "../format/time.js";
import { Button } from "../parts/button.js";
import { Code } from "../parts/copy.js";
import { icons } from "../parts/icons.js";
import { type Draft, draftOf, LimitDialog, newDraft } from "../parts/limit-dialog.js";
import { Await, Empty, Page } from "../parts/page.js";
import { SlotsPanel } from "./slots.js";

const freshMs = 10_000;

export function LimitsPage(): JSX.Element {
  const [draft, setDraft] = useState<Draft | null>(null);
  const shown = query.value.get("limit");
  const loaded = usePolled(
    "limits",
    async (signal) => {
      const [text, { limits }] = await Promise.all([
        callText("metrics", { signal }),
        call<{ limits: readonly Limit[] }>("v1/limits", { signal }),
      ]);
      const throttled = (readMetrics(text).get("pawl_throttled_runs") ?? []).map(
        ({ labels, value }) => [labels["limit"] ?? "", value] as const,
      );
      return { limits, throttled: new Map(throttled) };
    },
    () => freshMs,
  );
  return (
    <Page
      title="Limits"
      actions={
        <Button scope="admin" class="primary" onClick={() => setDraft(newDraft)}>
          {icons.plus}
          Add a limit…
        </Button>
      }
    >
      <section class="panel flush" aria-label="Limits">
        <Await loaded={loaded}>
          {({ limits, throttled }) =>
            limits.length === 0 ? (
              <Empty title="No limit">
                <p>
                  A limit spaces the runs that name it, or lets only some execute at once, on all workers.
                </p>
                <Code
                  text={cli("limits", "set", "stripe", "--allowed", "100", "--period", "1s")}
                  label="Set a limit"
                />
              </Empty>
            ) : (
              <div class="table-room">
                <table aria-label="Limits">
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col" class="right">
                        Rate
                      </th>
                      <th scope="col" class="right">
                        Burst
                      </th>
                      <th scope="col" class="right">
                        At once
                      </th>
                      <th scope="col" class="right">
                        Throttled now
                      </th>
                      <th scope="col">
                        <span class="unseen">Change</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {limits.map((limit) => (
                      <tr key={limit.name}>
                        <td class="run-link">{limit.name}</td>
                        <td class="right number">{rateOf(limit)}</td>
                        <td class="right number">{limit.burst === null ? "–" : number(limit.burst)}</td>
                        <td class="right number">
                          {limit.concurrent === null ? (
                            "–"
                          ) : (
                            <a href={pageAt("limits", { limit: limit.name })}>
                              {number(limit.concurrent)}
                              <span class="unseen"> at once: show who holds {limit.name}</span>
                            </a>
                          )}
                        </td>
                        <td class="right number">{number(throttled.get(limit.name) ?? 0)}</td>
                        <td class="right">
                          <Button
                            scope="admin"
                            aria-label={`Change ${limit.name}`}
                            onClick={() => setDraft(draftOf(limit))}
                          >
                            Change…
                          </Button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Await>
      </section>
      {shown !== null && <SlotsPanel key={shown} limit={shown} />}
      {draft !== null && <LimitDialog draft={draft} onClose={() => setDraft(null)} onDone={loaded.reload} />}
    </Page>
  );
}

const rateOf = ({ allowed, periodMs }: Limit): string =>
  allowed === null || periodMs === null ? "–" : `${number(allowed)} per ${duration(periodMs)}`;
