/**
 * The parts of `bench:peers` that decide what is said about the peers: which one Pawl is compared with, in which direction, in
 * which order they are measured, and that the chart shows them all. Nothing is measured here.
 */

import { expect, test } from "vitest";
import { UsageError } from "../../bench/dist/arguments.js";
import { parsePeersArguments } from "../../bench/dist/peers/arguments.js";
import { toSvg } from "../../bench/dist/peers/chart.js";
import { contestants } from "../../bench/dist/peers/contestants.js";
import { type Measurement, measurements } from "../../bench/dist/peers/protocol.js";
import { pawlAgainst, ratioOf, type Summary, summarize } from "../../bench/dist/peers/ratios.js";
import { toJson, toTable } from "../../bench/dist/peers/report.js";
import { entriesOf, inTurn, latestBeginMs } from "../../bench/dist/peers/schedule.js";

function summary(
  measurement: Measurement,
  contestant: string,
  value: number | null,
  more: Partial<Summary> = {},
): Summary {
  return {
    measurement,
    contestant,
    variant: "",
    isOnPostgres: true,
    isPart: false,
    value,
    least: value,
    most: value,
    p99: null,
    repetitions: 3,
    errors: [],
    ...more,
  };
}

test("a rate is compared with the best peer on Postgres, and more is better", () => {
  const summaries = [
    summary("jobs_drained", "pawl", 3_000),
    summary("jobs_drained", "graphile-worker", 2_000, { variant: "batched" }),
    summary("jobs_drained", "graphile-worker", 500, { variant: "unbatched" }),
    summary("jobs_drained", "bullmq", 9_000, { isOnPostgres: false }),
  ];
  const { ratio, best } = ratioOf(summaries, "jobs_drained");
  expect(ratio).toBe(1.5);
  expect(best).toMatchObject({ contestant: "graphile-worker", variant: "batched" });
  expect(pawlAgainst(summaries, summaries[3]!)).toBeCloseTo(1 / 3);
});

test("a latency is compared with the best of all, and less is better", () => {
  const summaries = [
    summary("result_latency", "pawl", 4),
    summary("result_latency", "dbos", 8),
    summary("result_latency", "bullmq", 2, { isOnPostgres: false }),
  ];
  expect(ratioOf(summaries, "result_latency")).toMatchObject({ ratio: 0.5, best: { contestant: "bullmq" } });
});

test("what measures only a part, and what failed, is no match", () => {
  const summaries = [
    summary("result_latency", "pawl", 4),
    summary("result_latency", "pg-boss", 1, { isPart: true }),
    summary("result_latency", "openworkflow", null, { errors: ["not done after 20 s"] }),
    summary("result_latency", "dbos", 8),
  ];
  expect(ratioOf(summaries, "result_latency").ratio).toBe(2);
  expect(toTable(summaries, "result_latency")).toContain("failed: not done after 20 s");
});

test("without a figure of Pawl or of a peer there is no ratio", () => {
  expect(ratioOf([summary("enqueued", "pawl", 1)], "enqueued")).toEqual({ ratio: null, best: null });
  expect(ratioOf([summary("enqueued", "pg-boss", 1)], "enqueued").ratio).toBeNull();
});

test("a summary is the median of the repetitions with its spread", () => {
  const [entry] = entriesOf(contestants, ["timer_lateness"]);
  const figures = [3, 1, 8].map((value) => ({ value, p99: 10 * value }));
  expect(summarize(entry!, figures, [])).toMatchObject({ value: 3, least: 1, most: 8, p99: 30 });
  expect(summarize(entry!, [], ["why"])).toMatchObject({ value: null, errors: ["why"] });
});

test("the last line of --json says every ratio, and who was the best", () => {
  const summaries = measurements.flatMap((measurement) => [
    summary(measurement, "pawl", 10),
    summary(measurement, "dbos", 5),
  ]);
  const { ratios, best } = JSON.parse(toJson(summaries, measurements, 1)) as {
    ratios: Record<string, number>;
    best: Record<string, object>;
  };
  expect(Object.keys(ratios)).toEqual([...measurements]);
  expect(ratios).toMatchObject({ workflow_steps: 2, signal_wakeup: 0.5 });
  expect(best["enqueued"]).toEqual({ name: "dbos", value: 5, postgres: true });
});

test("each repetition measures everything, and begins each measurement with another contestant", () => {
  const entries = entriesOf(contestants, measurements);
  const [first, second] = [inTurn(entries, 0), inTurn(entries, 1)];
  expect(new Set(second)).toEqual(new Set(first));
  const firstOf = (some: typeof first, measurement: Measurement) =>
    some.find((entry) => entry.measurement === measurement);
  for (const measurement of measurements)
    expect(firstOf(second, measurement)).not.toBe(firstOf(first, measurement));
  expect(first.map(({ measurement }) => measurement)).toEqual(second.map(({ measurement }) => measurement));
});

test("in the first repetition no measurement takes the time of those after it", () => {
  const entries = entriesOf(contestants, ["enqueued", "result_latency"]);
  const [first, last] = [entries[0]!, entries.at(-1)!];
  expect(latestBeginMs(entries, first, 0, 1_000)).toBe(500);
  expect(latestBeginMs(entries, last, 0, 1_000)).toBe(1_000);
  expect(latestBeginMs(entries, first, 1, 1_000)).toBe(1_000);
});

test("the command line chooses contestants and measurements, and says what is wrong with it", () => {
  expect(parsePeersArguments([])).toMatchObject({ json: false, quick: false, measure: measurements });
  expect(parsePeersArguments(["--quick", "--json", "--only", "dbos,pawl", "--measure=enqueued"])).toEqual({
    quick: true,
    json: true,
    only: ["pawl", "dbos"],
    measure: ["enqueued"],
  });
  expect(parsePeersArguments(["--help"])).toBeNull();
  expect(() => parsePeersArguments(["--only", "sidekiq"])).toThrow(UsageError);
  expect(() => parsePeersArguments(["--repeat", "3"])).toThrow(UsageError);
});

test("the chart has a bar for everything that was measured, and names what failed", () => {
  const summaries = [
    summary("enqueued", "pawl", 10),
    summary("enqueued", "pg-boss", 5),
    summary("result_latency", "pawl", 0.4),
    summary("result_latency", "a<b", 4_000),
    summary("result_latency", "dbos", null),
  ];
  const svg = toSvg(summaries, measurements, { title: "title", subtitle: "subtitle" });
  expect(svg.match(/class="bar"/g)).toHaveLength(4);
  expect(svg).toContain("a&lt;b");
  expect(svg).toContain("failed");
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});
