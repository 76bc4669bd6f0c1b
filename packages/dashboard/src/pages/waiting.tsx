/** Runs that wait for a signal, usually from a person: which one, since when, and a form to send it. */

import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { may } from "../api/me.js";
import { usePolled } from "../api/resource.js";
import { goTo, pageAt, query } from "../api/router.js";
import type { Waiting, WaitingRun } from "../api/types.js";
import { Button } from "../parts/button.js";
import { Code } from "../parts/copy.js";
import { Await, Empty, NextPage, Page } from "../parts/page.js";
import { SignalDialog } from "../parts/signal-dialog.js";
import { Time } from "../parts/time.js";

const freshMs = 5_000;

export function WaitingPage(): JSX.Element {
  const address = query.value;
  const filters = {
    name: address.get("name") ?? undefined,
    signal: address.get("signal") ?? undefined,
  };
  const cursor = address.get("cursor") ?? undefined;
  const loaded = usePolled(
    `waiting ${address.toString()}`,
    (signal) => call<Waiting>("v1/waiting", { signal, query: { ...filters, cursor } }),
    () => freshMs,
    {},
  );
  const [open, setOpen] = useState<{ readonly runId: string; readonly name: string } | null>(null);
  const isFiltered = filters.name !== undefined || filters.signal !== undefined;
  return (
    <Page title="Waiting for people">
      <div class="filter-row few" role="search" aria-label="Filter the runs">
        {(["name", "signal"] as const).map((one) => (
          <label class="filter" key={`${one} ${filters[one] ?? ""}`}>
            <span>{one === "name" ? "Definition" : "Signal"}</span>
            <input
              name={one}
              defaultValue={filters[one] ?? ""}
              autocomplete="off"
              spellcheck={false}
              onChange={(event) =>
                goTo(pageAt("waiting", { ...filters, [one]: event.currentTarget.value.trim() }))
              }
            />
          </label>
        ))}
      </div>
      <section class="panel flush" aria-label="Runs that wait for a signal">
        <Await loaded={loaded} lines={8}>
          {({ runs, cursor: next }) => (
            <>
              {runs.length > 0 ? (
                <Table runs={runs} onSend={(runId, name) => setOpen({ runId, name })} />
              ) : isFiltered || next !== null ? (
                <Empty title="No run here waits for such a signal">
                  <a class="button" href={pageAt("waiting")}>
                    Show all that wait
                  </a>
                </Empty>
              ) : (
                <NobodyWaits />
              )}
              <NextPage href={next && pageAt("waiting", { ...filters, cursor: next })}>More</NextPage>
            </>
          )}
        </Await>
      </section>
      {open !== null && (
        <SignalDialog
          runId={open.runId}
          name={open.name}
          onClose={() => setOpen(null)}
          onDone={loaded.reload}
        />
      )}
    </Page>
  );
}

function Table(props: {
  runs: readonly WaitingRun[];
  onSend: (runId: string, name: string) => void;
}): JSX.Element {
  return (
    <div class="table-room">
      <table class="wide" aria-label="Runs that wait for a signal">
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Waits for</th>
            <th scope="col">Tags</th>
            <th scope="col" class="right">
              Since
            </th>
            <th scope="col" class="right">
              Gives up
            </th>
          </tr>
        </thead>
        <tbody>
          {props.runs.map((run) => (
            <tr key={run.runId}>
              <td class="nowrap">
                <a class="run-link" href={pageAt(`runs/${run.runId}`)}>
                  {run.name}
                </a>
                <span class="muted"> #{run.runId}</span>
                {run.step !== null && <p class="muted small">then {run.step}</p>}
              </td>
              <td>
                <span class="served">
                  {run.signals.map((name) => (
                    <Fragment key={name}>
                      {!may("write") && <code>{name}</code>}
                      <Button
                        scope="write"
                        aria-label={`Send ${name} to run ${run.runId}`}
                        onClick={() => props.onSend(run.runId, name)}
                      >
                        Send “{name}”…
                      </Button>
                    </Fragment>
                  ))}
                </span>
              </td>
              <td>
                <span class="served">
                  {Object.entries(run.tags).map(([name, value]) => (
                    <a key={name} class="chip" href={pageAt("runs", { [`tag.${name}`]: value })}>
                      {name}={value}
                    </a>
                  ))}
                </span>
              </td>
              <td class="right nowrap">
                <Time at={run.since ?? run.startedAt} />
              </td>
              <td class="right nowrap">{run.deadline === null ? "never" : <Time at={run.deadline} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const example = `const answer = await step.waitForEvent("approval", { timeout: "3d" });`;

function NobodyWaits(): JSX.Element {
  return (
    <Empty title="No run waits for a signal">
      <p>
        A run can wait for a person: an approval, a payment, an answer. It costs nothing while it waits, and
        you answer it here.
      </p>
      <Code text={example} label="Wait for an approval" />
    </Empty>
  );
}
