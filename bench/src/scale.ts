/**
 * `scale`: the cost of a step as one quantity grows: the backlog, the completed runs in the table,
 * worker processes, the state, concurrency, queues, definitions, the journal, or the dead rows that
 * an old transaction keeps. Each curve is printed, and kept as JSON and as a plot.
 */

import type { Bench, BenchRequest, Figure } from "./bench.js";
import type { Panel, Series } from "./plot.js";
import { keepResults } from "./results.js";
import { type Curve, type PartName, partNames, parts, type Point } from "./scale-parts.js";
import { cpuUs } from "./steady.js";

export const scale: Bench = {
  defaults: { count: 60_000, quickCount: 12_000, concurrency: 500 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const figures: Figure[] = [];
    for (const name of request.part === undefined ? partNames : [request.part]) {
      const curve = await parts[name](request);
      figures.push(...figuresOf(name, curve));
      keep(name, curve);
    }
    return figures;
  },
};

const rateOf = ({ steps, seconds }: Point): number => steps / seconds;

function figuresOf(name: PartName, { lines }: Curve): Figure[] {
  return Object.entries(lines).flatMap(([line, points]) =>
    points.flatMap((point): Figure[] => {
      const key = [name, ...(line === "" ? [] : [line.replaceAll(" ", "_")]), point.x].join("_");
      const label = `${name} ${point.x.toLocaleString("en-US")}${line === "" ? "" : `, ${line}`}`;
      const ratio = cpuUs(point) / cpuUs(points[0]!);
      return [
        { key: `${key}_per_s`, label: `${label}: steps`, value: rateOf(point), unit: "/s" },
        { key: `${key}_postgres_us`, label: "  Postgres CPU per step", value: point.postgresUs, unit: "µs" },
        { key: `${key}_worker_us`, label: "  worker CPU per step", value: point.workerUs, unit: "µs" },
        { key: `${key}_ratio`, label: "  CPU per step, of the first", value: ratio, unit: "×" },
      ];
    }),
  );
}

function keep(name: PartName, curve: Curve): void {
  const { title, xLabel, xScale, lines } = curve;
  const series = (what: string, of: (point: Point) => number): Series[] =>
    Object.entries(lines).map(([line, points]) => ({
      name: [what, line].filter((part) => part !== "").join(", "),
      points: points.map((point) => ({ x: point.x, y: of(point) })),
    }));
  const panels: Panel[] = [
    {
      title: "CPU per step",
      unit: "µs",
      series: [
        ...series("Postgres", ({ postgresUs }) => postgresUs ?? 0),
        ...series("worker", ({ workerUs }) => workerUs),
      ],
    },
    { title: "Throughput", unit: "steps/s", series: series("", rateOf) },
  ];
  keepResults(`scale-${name}`, { part: name, ...curve }, { title, xLabel, xScale, panels });
}
