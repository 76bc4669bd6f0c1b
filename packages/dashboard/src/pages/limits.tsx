/** Rate limits: list them, and change or add one for all workers. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, callText } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import type { Limit } from "../api/types.js";
import { cli } from "../format/command.js";
import { readMetrics } from "../format/metrics.js";
import { number } from "../format/number.js";
import { duration } from "../format/time.js";
import { Code } from "../parts/copy.js";
import { Dialog, Field } from "../parts/dialog.js";
import { icons } from "../parts/icons.js";
import { Await, Empty, Page } from "../parts/page.js";

const freshMs = 10_000;

/** What is typed into the dialog. */
interface Draft {
  readonly name: string;
  readonly allowed: string;
  readonly period: string;
  readonly isNew: boolean;
}

export function LimitsPage(): JSX.Element {
  const [draft, setDraft] = useState<Draft | null>(null);
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
      title="Rate limits"
      actions={
        <button
          type="button"
          class="primary"
          onClick={() => setDraft({ name: "", allowed: "10", period: "1s", isNew: true })}
        >
          {icons.plus}
          Add a limit…
        </button>
      }
    >
      <section class="panel flush" aria-label="Rate limits">
        <Await loaded={loaded}>
          {({ limits, throttled }) =>
            limits.length === 0 ? (
              <Empty title="No rate limit">
                <p>A rate limit spaces the runs that name it, whichever worker executes them.</p>
                <Code
                  text={cli("limits", "set", "stripe", "--allowed", "100", "--period", "1s")}
                  label="Set a limit"
                />
              </Empty>
            ) : (
              <div class="table-room">
                <table aria-label="Rate limits">
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col" class="right">
                        Allowed
                      </th>
                      <th scope="col" class="right">
                        Burst
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
                        <td class="right number">
                          {number(limit.allowed)} per {duration(limit.periodMs)}
                        </td>
                        <td class="right number">{number(limit.burst)}</td>
                        <td class="right number">{number(throttled.get(limit.name) ?? 0)}</td>
                        <td class="right">
                          <button
                            type="button"
                            aria-label={`Change ${limit.name}`}
                            onClick={() => setDraft(draftOf(limit))}
                          >
                            Change…
                          </button>
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
      {draft !== null && <LimitDialog draft={draft} onClose={() => setDraft(null)} onDone={loaded.reload} />}
    </Page>
  );
}

const draftOf = ({ name, allowed, periodMs }: Limit): Draft => ({
  name,
  allowed: String(allowed),
  period: periodMs % 1_000 === 0 ? `${periodMs / 1_000}s` : `${periodMs}ms`,
  isNew: false,
});

function LimitDialog(props: { draft: Draft; onClose: () => void; onDone: () => void }): JSX.Element {
  const { isNew } = props.draft;
  const [{ name, allowed, period }, setDraft] = useState(props.draft);
  const set = (changes: Partial<Draft>): void => setDraft((draft) => ({ ...draft, ...changes }));
  return (
    <Dialog
      title={isNew ? "Add a rate limit" : `Change the rate limit ${name}`}
      verb={isNew ? "Add the limit" : "Change the limit"}
      command={cli("limits", "set", name === "" ? "name" : name, "--allowed", allowed, "--period", period)}
      onClose={props.onClose}
      act={async () => {
        const body = { allowed: Number(allowed), period };
        await call(`v1/limits/${encodeURIComponent(name)}`, { method: "PUT", body });
        props.onDone();
      }}
    >
      <p>It holds for all workers at once.</p>
      {isNew && (
        <Field label="Name">
          <input
            name="name"
            required
            autofocus
            spellcheck={false}
            value={name}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        </Field>
      )}
      <div class="pair">
        <Field label="Allowed">
          <input
            name="allowed"
            type="number"
            min="0"
            step="any"
            required
            autofocus={!isNew}
            value={allowed}
            onInput={(event) => set({ allowed: event.currentTarget.value })}
          />
        </Field>
        <Field label="Period">
          <input
            name="period"
            required
            spellcheck={false}
            value={period}
            onInput={(event) => set({ period: event.currentTarget.value })}
          />
        </Field>
      </div>
    </Dialog>
  );
}
