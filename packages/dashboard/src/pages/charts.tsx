/** The charts of the overview: throughput, failures, durations and backlog in whole minutes or hours. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { now } from "../api/clock.js";
import { pageAt, query } from "../api/router.js";
import type { Point, Series } from "../api/types.js";
import { number } from "../format/number.js";
import { duration } from "../format/time.js";
import { Chart } from "../parts/chart.js";
import { Await } from "../parts/page.js";

const hourMs = 3_600_000;
/** As `span` in the address: the label, the length, and the width of a point. */
const spans = [
  ["1h", "1 hour", hourMs, "minute"],
  ["24h", "24 hours", 24 * hourMs, "minute"],
  ["7d", "7 days", 7 * 24 * hourMs, "hour"],
  ["30d", "30 days", 30 * 24 * hourMs, "hour"],
] as const;
const freshMs = 15_000;

export function Charts(): JSX.Element {
  const [value, , ms, by] = spans.find(([one]) => one === query.value.get("span")) ?? spans[0];
  const loaded = usePolled(
    `series ${value}`,
    (signal) =>
      call<Series>("v1/series", {
        signal,
        query: { by, from: new Date(now.peek() - ms).toISOString() },
      }),
    () => freshMs,
  );
  return (
    <section class="panel charts" aria-label="Over time">
      <header>
        <h2>Over time</h2>
        <div class="segments" role="group" aria-label="Span of the charts">
          {spans.map(([one, label]) => (
            <a
              key={one}
              href={pageAt("", one === "1h" ? {} : { span: one })}
              aria-current={one === value ? "true" : undefined}
            >
              {label}
            </a>
          ))}
        </div>
      </header>
      <Await loaded={loaded} lines={6}>
        {({ points }) => <Four points={points} unit={by} />}
      </Await>
    </section>
  );
}

const sumOf = (values: readonly (number | null)[]): string =>
  number(values.reduce<number>((sum, value) => sum + (value ?? 0), 0));
const lastOf =
  (format: (value: number) => string) =>
  (values: readonly (number | null)[]): string => {
    const last = values.findLast((value) => value !== null);
    return last === null || last === undefined ? "–" : format(last);
  };

const unitMs = { minute: 60_000, hour: hourMs };

function Four(props: { points: readonly Point[]; unit: "minute" | "hour" }): JSX.Element {
  const { unit } = props;
  // The unfinished last minute or hour would look as if everything stopped.
  const points = useMemo(
    () => props.points.filter(({ at }) => Date.parse(at) + unitMs[unit] <= now.peek()),
    [props.points, unit],
  );
  const of = (name: Exclude<keyof Point, "at">): (number | null)[] => points.map((point) => point[name]);
  const lines = useMemo(
    () => ({
      times: points.map(({ at }) => Date.parse(at) / 1_000),
      throughput: [
        { label: "started", color: "executing", values: of("started"), dash: [5, 4] },
        { label: "completed", color: "completed", values: of("completed"), isFilled: true },
      ],
      failures: [
        { label: "failed", color: "failed", values: of("failed"), isFilled: true },
        { label: "cancelled", color: "cancelled", values: of("cancelled"), dash: [5, 4] },
      ],
      durations: [
        { label: "p50", color: "waiting", values: of("p50Ms"), isFilled: true },
        { label: "p95", color: "delayed", values: of("p95Ms"), dash: [5, 4] },
      ],
      backlog: [{ label: "due", color: "delayed", values: of("backlog"), isFilled: true }],
    }),
    [points],
  );
  const { times } = lines;
  return (
    <div class="chart-grid">
      <Chart
        title={`Runs per ${unit}`}
        times={times}
        lines={lines.throughput}
        format={number}
        summary={sumOf}
      />
      <Chart
        title={`Failures per ${unit}`}
        times={times}
        lines={lines.failures}
        format={number}
        summary={sumOf}
      />
      <Chart
        title="Duration, start to end"
        times={times}
        lines={lines.durations}
        format={duration}
        summary={lastOf(duration)}
      />
      <Chart title="Backlog" times={times} lines={lines.backlog} format={number} summary={lastOf(number)} />
    </div>
  );
}
