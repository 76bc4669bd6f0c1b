/** All runs, newest first, with filters that are part of the address, a page at a time. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { now } from "../api/clock.js";
import type { Watched } from "../api/events.js";
import { usePolled } from "../api/resource.js";
import { goTo, pageAt, query } from "../api/router.js";
import type { RunPage } from "../api/types.js";
import { icons } from "../parts/icons.js";
import { Await, Empty, Page } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { BulkButton } from "./bulk-button.js";
import { FirstRun, StartButton } from "./start.js";
import { isFiltered, phases, readPair, spans, statuses, toApiQuery } from "./filters.js";

/** On a phone the filters are folded. */
const isWide = matchMedia("(min-width: 40rem)");
/** Filters without a field, which links lead to. */
const unfielded = ["since", "until", "kind", "parentId", "paused", "correlationKey"];
const pageSize = 50;
const freshMs = 3_000;
/** Older pages change rarely. */
const olderMs = 15_000;

export function RunsPage(): JSX.Element {
  const address = query.value;
  const filters = toApiQuery(address, now.peek());
  const cursor = address.get("cursor");
  const only = (name: "name" | "queue" | "status"): Watched =>
    filters[name] === undefined ? {} : { [name]: filters[name] };
  const loaded = usePolled(
    `runs ${address.toString()}`,
    (signal) =>
      call<RunPage>("v1/runs", { signal, query: { ...toApiQuery(address, now.peek()), limit: pageSize } }),
    () => (cursor === null ? freshMs : olderMs),
    { ...only("name"), ...only("queue"), ...only("status") },
  );
  return (
    <Page
      title="Runs"
      actions={<StartButton {...(filters["name"] === undefined ? {} : { name: filters["name"] })} />}
    >
      <Filters address={address} />
      <section class="panel flush" aria-label="Runs">
        <Await loaded={loaded} lines={12}>
          {({ runs, cursor: next }) => (
            <>
              {runs.length > 0 ? (
                <RunTable runs={runs} label="Runs, newest first" />
              ) : isFiltered(address) ? (
                <Empty title="No run matches these filters">
                  <a class="button" href={pageAt("runs")}>
                    Show all runs
                  </a>
                </Empty>
              ) : cursor === null ? (
                <FirstRun />
              ) : (
                <Empty title="No older runs" />
              )}
              <Paging cursor={cursor} next={next} />
            </>
          )}
        </Await>
      </section>
    </Page>
  );
}

function Paging({ cursor, next }: { cursor: string | null; next: string | null }): JSX.Element | null {
  if (cursor === null && next === null) return null;
  return (
    <nav class="paging" aria-label="Pages">
      {cursor === null ? (
        <span class="muted">The newest {pageSize}</span>
      ) : (
        <a class="button" href={changed({ cursor: null })}>
          Newest
        </a>
      )}
      {next === null ? (
        <span class="muted">These are the oldest</span>
      ) : (
        <a class="button" href={changed({ cursor: next })}>
          Older
        </a>
      )}
    </nav>
  );
}

function Filters({ address }: { address: URLSearchParams }): JSX.Element {
  const status = address.get("status");
  const set = (changes: Readonly<Record<string, string | null>>): void =>
    goTo(changed({ ...changes, cursor: null }));
  return (
    <div class="filters" role="search" aria-label="Filter the runs">
      <div class="segments" role="group" aria-label="Status">
        <a href={changed({ status: null, phase: null, cursor: null })} aria-current={status === null}>
          All
        </a>
        {statuses.map((one) => (
          <a
            key={one}
            class={`is-${one === "running" ? "executing" : one}`}
            href={changed({ status: one, phase: null, cursor: null })}
            aria-current={status === one}
          >
            {icons[one === "running" ? "executing" : one]}
            {one.slice(0, 1).toUpperCase() + one.slice(1)}
          </a>
        ))}
      </div>
      <details class="filter-room" open={isWide.matches || isFiltered(address)}>
        <summary>Filters</summary>
        <div class="filter-row">
          <TextFilter name="name" label="Name" address={address} onSet={set} />
          <TextFilter name="version" label="Version" address={address} onSet={set} isNumber />
          <TextFilter name="queue" label="Queue" address={address} onSet={set} />
          <TextFilter name="error" label="Error code" address={address} onSet={set} />
          <PairFilter kind="tag" label="Tag" example="plan=pro" onSet={set} />
          <PairFilter kind="input" label="Input has" example="user.id=42" onSet={set} />
          <label class="filter">
            <span>Phase</span>
            <select
              name="phase"
              value={address.get("phase") ?? ""}
              onChange={(event) => set({ phase: event.currentTarget.value })}
            >
              <option value="">Any</option>
              {phases.map((phase) => (
                <option key={phase} value={phase}>
                  {phase.replace("_", " ")}
                </option>
              ))}
            </select>
          </label>
          <label class="filter">
            <span>Started</span>
            <select
              name="started"
              value={address.get("started") ?? ""}
              onChange={(event) => set({ started: event.currentTarget.value, since: null, until: null })}
            >
              <option value="">Any time</option>
              {spans.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        </div>
      </details>
      <Chosen address={address} />
    </div>
  );
}

function TextFilter(props: {
  name: string;
  label: string;
  address: URLSearchParams;
  isNumber?: boolean;
  onSet: (changes: Record<string, string | null>) => void;
}): JSX.Element {
  const { name, label, address, isNumber = false, onSet } = props;
  const value = address.get(name) ?? "";
  return (
    <label class={isNumber ? "filter short" : "filter"}>
      <span>{label}</span>
      <input
        // Another value in the address replaces what is typed.
        key={value}
        name={name}
        defaultValue={value}
        inputMode={isNumber ? "numeric" : "text"}
        autocomplete="off"
        spellcheck={false}
        onChange={(event) => onSet({ [name]: event.currentTarget.value.trim() })}
      />
    </label>
  );
}

/** Adds a filter on a member of the input or on a tag, typed as `user.id=42`. */
function PairFilter(props: {
  kind: "input" | "tag";
  label: string;
  example: string;
  onSet: (changes: Record<string, string | null>) => void;
}): JSX.Element {
  const { kind, label, example, onSet } = props;
  const [isWrong, setWrong] = useState(false);
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        name={kind}
        placeholder={example}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={isWrong}
        title={isWrong ? `Write a name, =, and a value: ${example}` : undefined}
        onChange={(event) => {
          const { value } = event.currentTarget;
          const filter = readPair(kind, value);
          setWrong(filter === null && value !== "");
          if (filter === null) return;
          event.currentTarget.value = "";
          onSet({ [filter[0]]: filter[1] });
        }}
      />
    </label>
  );
}

/** The filters without a field of their own, each with a button that removes it. */
function Chosen({ address }: { address: URLSearchParams }): JSX.Element | null {
  const chosen = [...address].filter(([name]) => /^(input|tag)\../.test(name) || unfielded.includes(name));
  if (chosen.length === 0 && !isFiltered(address)) return null;
  return (
    <div class="chosen">
      {chosen.map(([name, value]) => (
        <a
          key={name}
          class="chip"
          href={changed({ [name]: null, cursor: null })}
          aria-label={`Remove the filter ${name}`}
        >
          {name} = {value}
          {icons.close}
        </a>
      ))}
      <a class="clear" href={pageAt("runs")}>
        Clear all filters
      </a>
      <BulkButton address={address} />
    </div>
  );
}

/** The present address with these filters changed. */
function changed(changes: Readonly<Record<string, string | null>>): string {
  const next = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  return pageAt("runs", Object.fromEntries(next));
}
