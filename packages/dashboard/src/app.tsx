/** The frame around every page: navigation, the search for a run, theme; and which page it is. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { setToken, token, tokenWanted } from "./api/client.js";
import { isStreaming } from "./api/events.js";
import { has, isLimited, me } from "./api/me.js";
import { isLive } from "./api/resource.js";
import { goTo, pageAt, path } from "./api/router.js";
import { nextTheme, theme } from "./api/theme.js";
import { ActionsPage } from "./pages/actions.js";
import { BulkPage } from "./pages/bulk.js";
import { DefinitionPage } from "./pages/definition.js";
import { DefinitionsPage } from "./pages/definitions.js";
import { DoctorPage } from "./pages/doctor.js";
import { KeysPage } from "./pages/keys.js";
import { LimitsPage } from "./pages/limits.js";
import { OverviewPage } from "./pages/overview.js";
import { QueuesPage } from "./pages/queues.js";
import { SchedulePage } from "./pages/schedule.js";
import { SchedulesPage } from "./pages/schedules.js";
import { RunsPage } from "./pages/runs.js";
import { WaitingPage } from "./pages/waiting.js";
import { WorkersPage } from "./pages/workers.js";
import { icons, Mark } from "./parts/icons.js";
import { Empty, Page } from "./parts/page.js";
import { TokenPage } from "./parts/token.js";
import { RunPage } from "./run/run-page.js";

const places = [
  ["", "Overview", icons.overview],
  ["runs", "Runs", icons.runs],
  ["waiting", "Waiting", icons.person],
  ["definitions", "Definitions", icons.definitions],
  ["schedules", "Schedules", icons.schedules],
  ["queues", "Queues", icons.queues],
  ["keys", "Keys", icons.key],
  ["limits", "Limits", icons.limits],
  ["workers", "Workers", icons.workers],
  ["doctor", "Doctor", icons.doctor],
  ["actions", "Action log", icons.actions],
] as const;

export function App(): JSX.Element {
  const at = path.value;
  useEffect(() => {
    // On a phone the navigation scrolls sideways.
    document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [at]);
  if (tokenWanted.value !== null) return <TokenPage />;
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <nav class="side" aria-label="Pages">
        <a class="brand" href={pageAt("")}>
          <Mark />
          <span>Pawl</span>
        </a>
        <ul>
          {places.filter(isVisible).map(([to, label, icon]) => (
            <li key={to}>
              <a href={pageAt(to)} aria-current={isAt(to) ? "page" : undefined}>
                {icon}
                <span>{label}</span>
              </a>
            </li>
          ))}
        </ul>
        <div class="side-end">
          {me.value !== null && me.value.name !== null && <p class="muted">{me.value.name}</p>}
          <FindRun />
          <div class="side-buttons">
            <button
              type="button"
              class="quiet live"
              aria-pressed={isLive.value}
              title={liveTitle()}
              onClick={() => (isLive.value = !isLive.value)}
            >
              <span class={isLive.value ? "dot on" : "dot"} />
              {isLive.value ? "Live" : "Paused"}
            </button>
            <button type="button" class="quiet" onClick={nextTheme} title={`Theme: ${theme.value}`}>
              {icons.sun}
              <span class="unseen">Change the theme, now {theme.value}</span>
            </button>
            {token.value !== null && (
              <button type="button" class="quiet" onClick={signOut}>
                Sign out
              </button>
            )}
          </div>
        </div>
      </nav>
      <main id="content">
        <Shown />
      </main>
    </div>
  );
}

function Shown(): JSX.Element {
  const at = path.value;
  const [, runId] = /^runs\/([^/]+)$/.exec(at) ?? [];
  if (runId !== undefined) return <RunPage key={runId} runId={runId} />;
  const [, schedule] = /^schedules\/([^/]+)$/.exec(at) ?? [];
  if (schedule !== undefined) {
    const name = decodeURIComponent(schedule);
    return <SchedulePage key={name} name={name} />;
  }
  const [, definition] = /^definitions\/([^/]+)$/.exec(at) ?? [];
  if (definition !== undefined) {
    const name = decodeURIComponent(definition);
    return <DefinitionPage key={name} name={name} />;
  }
  const [, bulk] = /^bulk\/([^/]+)$/.exec(at) ?? [];
  if (bulk !== undefined) return <BulkPage key={bulk} id={bulk} />;
  switch (at) {
    case "":
      return <OverviewPage />;
    case "runs":
      return <RunsPage />;
    case "definitions":
      return <DefinitionsPage />;
    case "schedules":
      return <SchedulesPage />;
    case "queues":
      return <QueuesPage />;
    case "waiting":
      return <WaitingPage />;
    case "keys":
      return <KeysPage />;
    case "workers":
      return <WorkersPage />;
    case "doctor":
      return <DoctorPage />;
    case "actions":
      return <ActionsPage />;
    case "limits":
      return <LimitsPage />;
    default:
      return (
        <Page title="Not found">
          <Empty title="There is no such page">
            <a class="button" href={pageAt("")}>
              Go to the overview
            </a>
          </Empty>
        </Page>
      );
  }
}

/** Goes to a run by its id. The key "/" leads here. */
function FindRun(): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || isTyping) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <form
      class="find"
      role="search"
      aria-label="Find a run"
      onSubmit={(event) => {
        event.preventDefault();
        const id = (field.current?.value ?? "").trim().replace(/^#/, "");
        if (id === "" || field.current === null) return;
        field.current.value = "";
        goTo(pageAt(`runs/${encodeURIComponent(id)}`));
      }}
    >
      <input ref={field} name="run" placeholder="Go to run…" aria-label="Id of a run" autocomplete="off" />
      <kbd>/</kbd>
    </form>
  );
}

function liveTitle(): string {
  if (!isLive.value) return "The page does not update itself";
  return isStreaming.value ? "Changes appear at once" : "The page updates itself every few seconds";
}

/** The action log has what everybody did: only tokens that may see all can read it. */
function isVisible([to]: (typeof places)[number]): boolean {
  return to !== "actions" || (has("admin") && !isLimited());
}

function isAt(to: string): boolean {
  return to === "" ? path.value === "" : path.value === to || path.value.startsWith(`${to}/`);
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("main h1")?.focus();
}

function signOut(): void {
  setToken(null);
  tokenWanted.value = "You have signed out.";
}
