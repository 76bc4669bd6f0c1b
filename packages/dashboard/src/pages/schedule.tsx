/** One schedule: its next ticks, and pausing, triggering, backfilling or removing it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { goTo, pageAt } from "../api/router.js";
import type { Run, RunPage, ScheduleDetail } from "../api/types.js";
import { cli } from "../format/command.js";
import { duration } from "../format/time.js";
import { type Fact, FactList } from "../parts/fact-list.js";
import { ActButton } from "../parts/act-button.js";
import { Button } from "../parts/button.js";
import { Dialog, Field } from "../parts/dialog.js";
import { Json } from "../parts/json.js";
import { Await, Page, Panel } from "../parts/page.js";
import { RunTable } from "../parts/run-table.js";
import { Badge } from "../parts/status.js";
import { Time } from "../parts/time.js";
import { LastRun, timesOf } from "./schedules.js";

const freshMs = 5_000;
/** So many runs of the definition are searched for those that the schedule started. */
const searched = 50;

interface Found {
  readonly schedule: ScheduleDetail;
  readonly runs: readonly Run[];
}

async function read(path: string, name: string, signal: AbortSignal): Promise<Found> {
  const schedule = await call<ScheduleDetail>(path, { signal });
  const query = { name: schedule.definition, limit: searched };
  const { runs } = await call<RunPage>("v1/runs", { signal, query });
  return { schedule, runs: runs.filter((run) => run.schedule?.name === name).slice(0, 10) };
}

export function SchedulePage({ name }: { name: string }): JSX.Element {
  const path = `v1/schedules/${encodeURIComponent(name)}`;
  const loaded = usePolled(
    `schedule ${name}`,
    (signal) => read(path, name, signal),
    () => freshMs,
  );
  const { data, reload } = loaded;
  return (
    <Page title={name} actions={data?.schedule.paused === true && <Badge look="paused" />}>
      <Await loaded={loaded} lines={8}>
        {({ schedule, runs }) => (
          <>
            <section
              class={`why is-${schedule.problem !== null ? "failed" : schedule.paused ? "paused" : "completed"}`}
            >
              <p class="headline">
                <Summary schedule={schedule} />
              </p>
              <Buttons schedule={schedule} path={path} onDone={reload} />
            </section>
            <div class="columns">
              <div class="column">
                <Panel title="Input of its runs">
                  <Json value={schedule.input} label="Input" />
                </Panel>
              </div>
              <div class="column">
                <Panel title="Next ticks">
                  <ol class="ticks">
                    {schedule.next.map((at) => (
                      <li key={at}>
                        <span class="number">
                          {new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}
                        </span>
                        <span class="muted">
                          <Time at={at} />
                        </span>
                      </li>
                    ))}
                  </ol>
                </Panel>
                <Panel title="Facts">
                  <Facts schedule={schedule} />
                </Panel>
              </div>
            </div>
            {runs.length > 0 && (
              <Panel
                title="Its latest runs"
                note={`among the newest ${searched} of ${schedule.definition}`}
                flush
              >
                <RunTable runs={runs} label="Its latest runs" />
              </Panel>
            )}
          </>
        )}
      </Await>
    </Page>
  );
}

function Summary({ schedule }: { schedule: ScheduleDetail }): JSX.Element {
  const { definition, problem, paused, pausedAt, nextAt } = schedule;
  if (problem !== null) return <>{problem}</>;
  if (paused) {
    return (
      <>
        Paused {pausedAt !== null && <Time at={pausedAt} />}: it starts no run of <code>{definition}</code>{" "}
        until you resume it.
      </>
    );
  }
  return (
    <>
      Starts <code>{definition}</code> {nextAt === null ? "never again" : <Time at={nextAt} />}.
    </>
  );
}

function Facts({ schedule }: { schedule: ScheduleDetail }): JSX.Element {
  const facts: Fact[] = [
    ["When", <code>{timesOf(schedule)}</code>],
    ["Starts", <a href={pageAt("runs", { name: schedule.definition })}>{schedule.definition}</a>],
    ["Last run", <LastRun schedule={schedule} />],
    ["Overlap", schedule.overlap],
    ["Missed ticks", schedule.catchUp],
    ["Set", <Time at={schedule.setAt} />],
  ];
  if (schedule.jitterMs > 0) facts.push(["Jitter", `up to ${duration(schedule.jitterMs)}`]);
  if (schedule.skippedAt !== null) facts.push(["Last skipped", <Time at={schedule.skippedAt} />]);
  return <FactList facts={facts} />;
}

function Buttons(props: { schedule: ScheduleDetail; path: string; onDone: () => void }): JSX.Element {
  const { schedule, path, onDone } = props;
  const { name, paused, definition } = schedule;
  const [isBackfilling, setBackfilling] = useState(false);
  const verb = paused ? "Resume" : "Pause";
  return (
    <div class="remedies">
      <ActButton
        label="Trigger…"
        isPrimary
        title={`Start a run of ${name} now?`}
        verb="Start the run"
        consequence={`A run of ${definition} starts at once, beside its ticks.`}
        command={() => cli("schedules", "trigger", name)}
        path={`${path}/trigger`}
        onDone={onDone}
      />
      <ActButton
        label={`${verb}…`}
        title={`${verb} the schedule ${name}?`}
        verb={`${verb} the schedule`}
        consequence={
          paused
            ? `It starts runs again. Ticks that it missed: ${schedule.catchUp}.`
            : "It starts no run until you resume it. Runs that have begun go on."
        }
        command={() => cli("schedules", verb.toLowerCase(), name)}
        path={`${path}/${verb.toLowerCase()}`}
        onDone={onDone}
      />
      <Button scope="write" onClick={() => setBackfilling(true)}>
        Backfill…
      </Button>
      <ActButton
        label="Remove…"
        isDangerous
        title={`Remove the schedule ${name}?`}
        verb="Remove the schedule"
        consequence="Its runs go on. A worker that declares it sets it again when it starts."
        command={() => cli("schedules", "remove", name)}
        path={path}
        method="DELETE"
        onDone={() => goTo(pageAt("schedules"))}
      />
      {isBackfilling && (
        <BackfillDialog name={name} path={path} onClose={() => setBackfilling(false)} onDone={onDone} />
      )}
    </div>
  );
}

function BackfillDialog(props: {
  name: string;
  path: string;
  onClose: () => void;
  onDone: () => void;
}): JSX.Element {
  const { name, path, onClose, onDone } = props;
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const iso = (local: string): string => (local === "" ? "…" : new Date(local).toISOString());
  return (
    <Dialog
      title={`Backfill ${name}`}
      verb="Start the runs"
      command={cli("schedules", "backfill", name, "--from", iso(from), "--to", iso(to))}
      onClose={onClose}
      act={async () => {
        await call(`${path}/backfill`, { method: "POST", body: { from: iso(from), to: iso(to) } });
        onDone();
      }}
    >
      <p>Starts a run for every tick in this range. A tick that has its run gets no second one.</p>
      <div class="pair">
        <Field label="From">
          <input
            type="datetime-local"
            name="from"
            required
            value={from}
            onInput={(event) => setFrom(event.currentTarget.value)}
          />
        </Field>
        <Field label="To">
          <input
            type="datetime-local"
            name="to"
            required
            value={to}
            onInput={(event) => setTo(event.currentTarget.value)}
          />
        </Field>
      </div>
    </Dialog>
  );
}
