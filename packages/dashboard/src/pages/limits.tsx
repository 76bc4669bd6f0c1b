/** Limits, of rates and of runs at once: list them, and change or add one for all workers. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, callText } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import type { Limit } from "../api/types.js";
import { cli } from "../format/command.js";
import { readMetrics } from "../format/metrics.js";
import { number } from "../format/number.js";
import { duration } from "../format/time.js";
import { Button } from "../parts/button.js";
import { Code } from "../parts/copy.js";
import { Dialog, Field } from "../parts/dialog.js";
import { icons } from "../parts/icons.js";
import { Await, Empty, Page } from "../parts/page.js";

const freshMs = 10_000;

/** The fields of the dialog. An empty text sets no such limit. */
interface Draft {
  readonly name: string;
  readonly allowed: string;
  readonly period: string;
  readonly burst: string;
  readonly concurrent: string;
  readonly isNew: boolean;
}

const newDraft: Draft = { name: "", allowed: "10", period: "1s", burst: "", concurrent: "", isNew: true };

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
                          {limit.concurrent === null ? "–" : number(limit.concurrent)}
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
      {draft !== null && <LimitDialog draft={draft} onClose={() => setDraft(null)} onDone={loaded.reload} />}
    </Page>
  );
}

const rateOf = ({ allowed, periodMs }: Limit): string =>
  allowed === null || periodMs === null ? "–" : `${number(allowed)} per ${duration(periodMs)}`;

const textOf = (value: number | null): string => (value === null ? "" : String(value));

const draftOf = ({ name, allowed, periodMs, burst, concurrent }: Limit): Draft => ({
  name,
  allowed: textOf(allowed),
  period: periodMs === null ? "" : periodMs % 1_000 === 0 ? `${periodMs / 1_000}s` : `${periodMs}ms`,
  // The default follows the rate.
  burst: burst === null || burst === Math.max(1, allowed ?? 0) ? "" : String(burst),
  concurrent: textOf(concurrent),
  isNew: false,
});

const fields = [
  ["allowed", "Allowed", "number"],
  ["period", "per period", "text"],
  ["burst", "Burst", "number"],
  ["concurrent", "At once", "number"],
] as const;

function LimitDialog(props: { draft: Draft; onClose: () => void; onDone: () => void }): JSX.Element {
  const { isNew } = props.draft;
  const [draft, setDraft] = useState(props.draft);
  const { name } = draft;
  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const given = fields.filter(([field]) => draft[field] !== "");
  return (
    <Dialog
      title={isNew ? "Add a limit" : `Change the limit ${name}`}
      verb={isNew ? "Add the limit" : "Change the limit"}
      command={cli(
        "limits",
        "set",
        name === "" ? "name" : name,
        ...given.flatMap(([field]) => [`--${field}`, draft[field]]),
      )}
      onClose={props.onClose}
      act={async () => {
        const body = Object.fromEntries(
          given.map(([field, , type]) => [field, type === "number" ? Number(draft[field]) : draft[field]]),
        );
        await call(`v1/limits/${encodeURIComponent(name)}`, { method: "PUT", body });
        props.onDone();
      }}
    >
      <p>It holds for all workers at once. Give a rate, how many runs execute at once, or both.</p>
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
        {fields.map(([field, label, type]) => (
          <Field key={field} label={label}>
            <input
              name={field}
              inputMode={type === "number" ? "decimal" : "text"}
              spellcheck={false}
              value={draft[field]}
              onInput={(event) => set({ [field]: event.currentTarget.value })}
            />
          </Field>
        ))}
      </div>
    </Dialog>
  );
}
