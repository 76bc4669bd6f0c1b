/** All schedules: when each fires next, and how its last run went. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Schedule } from "../api/types.js";
import { duration } from "../format/time.js";
import { Code } from "../parts/copy.js";
import { Await, Empty, NextPage, Page } from "../parts/page.js";
import { Badge } from "../parts/status.js";
import { Time } from "../parts/time.js";

const freshMs = 5_000;

interface SchedulePage {
  readonly schedules: readonly Schedule[];
  readonly cursor: string | null;
}

export function SchedulesPage(): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `schedules ${cursor ?? ""}`,
    (signal) => call<SchedulePage>("v1/schedules", { signal, query: { cursor } }),
    () => freshMs,
  );
  return (
    <Page title="Schedules">
      <section class="panel flush" aria-label="Schedules">
        <Await loaded={loaded} lines={6}>
          {({ schedules, cursor: next }) => (
            <>
              {schedules.length === 0 ? <FirstSchedule /> : <Table schedules={schedules} />}
              <NextPage href={next && pageAt("schedules", { cursor: next })}>More</NextPage>
            </>
          )}
        </Await>
      </section>
    </Page>
  );
}

/** Such as "0 3 * * * (Europe/Berlin)" or "every 15 min". */
export function timesOf({
  cron,
  everyMs,
  timeZone,
}: Pick<Schedule, "cron" | "everyMs" | "timeZone">): string {
  if (cron !== null) return timeZone === "UTC" ? cron : `${cron} (${timeZone})`;
  return `every ${duration(everyMs ?? 0)}`;
}

function Table({ schedules }: { schedules: readonly Schedule[] }): JSX.Element {
  return (
    <div class="table-room">
      <table aria-label="Schedules">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">When</th>
            <th scope="col">Starts</th>
            <th scope="col">Last run</th>
            <th scope="col" class="right">
              Next
            </th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <tr key={schedule.name}>
              <td>
                <a class="run-link" href={pageAt(`schedules/${encodeURIComponent(schedule.name)}`)}>
                  {schedule.name}
                </a>
                {schedule.problem !== null && (
                  <p class="error-line" title={schedule.problem}>
                    {schedule.problem}
                  </p>
                )}
              </td>
              <td class="nowrap">
                <code>{timesOf(schedule)}</code>
              </td>
              <td>{schedule.definition}</td>
              <td class="nowrap">
                <LastRun schedule={schedule} />
              </td>
              <td class="right nowrap">
                {schedule.paused ? (
                  <Badge look="paused" />
                ) : schedule.nextAt === null ? (
                  "–"
                ) : (
                  <Time at={schedule.nextAt} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function LastRun({ schedule }: { schedule: Schedule }): JSX.Element {
  const { lastRunId, lastStatus, lastAt } = schedule;
  if (lastRunId === null) return <span class="muted">none yet</span>;
  const look = lastStatus === "running" ? "executing" : lastStatus;
  return (
    <a class="last-run" href={pageAt(`runs/${lastRunId}`)}>
      {look === null ? (
        `#${lastRunId}`
      ) : (
        <Badge look={look} {...(look === "executing" ? { text: "Running" } : {})} />
      )}
      {lastAt !== null && (
        <span class="muted">
          <Time at={lastAt} />
        </span>
      )}
    </a>
  );
}

function FirstSchedule(): JSX.Element {
  return (
    <Empty title="No schedule">
      <p>A schedule starts a run at every tick of a cron expression or an interval.</p>
      <Code
        text={`npx pawl schedules set nightly --cron "0 3 * * *" --time-zone Europe/Berlin --start cleanup`}
        label="Set a schedule"
      />
    </Empty>
  );
}
