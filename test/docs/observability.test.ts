import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Events } from "../../packages/pawl/dist/observe/events.js";
import { Gauges } from "../../packages/pawl/dist/observe/gauges.js";
import { Metrics } from "../../packages/pawl/dist/observe/metrics.js";
import { silent } from "../support/engine.js";
import { readExposition } from "../support/http/exposition.js";
import { readPage, root, sectionOf } from "./pages.js";

// The labels are those of series, so each metric needs one.
const events = new Events(silent);
const metrics = new Metrics(events, () => [[1, "a"]]);
const of = { runId: "64", name: "a", version: 1 };
const step = { ...of, step: "s", kind: "run", attempt: 0 } as const;
events.emit("run.started", { ...of, parentId: null });
events.emit("run.claimed", { ...of, queue: "q", attempt: 0 });
events.emit("run.completed", { ...of, status: "completed", code: null, durationMs: 1 });
events.emit("run.unique_lost", of);
events.emit("step.completed", { ...step, durationMs: 1 });
events.emit("step.failed", { ...step, durationMs: 1, error: null });
events.emit("step.retried", { ...step, durationMs: 1, delayMs: 1, error: null });
events.emit("signal.delivered", { runId: "64", name: "a", event: "e" });
for (const runs of [0, 1]) events.emit("claim", { queue: "q", runs, durationMs: 1 });
events.emit("run.throttled", { queue: "q", runs: 1 });
events.emit("flush", { what: "commit", size: 1, durationMs: 1 });
events.emit("batch", { name: "a", version: 1, queue: "q", size: 1, durationMs: 1 });
events.emit("commit.stale", of);
events.emit("schedule.fired", { schedule: "s", runId: "64", name: "a", at: new Date(), lateMs: 1 });
events.emit("schedule.skipped", { schedule: "s", at: new Date() });
events.emit("schedule.failed", { schedule: "s", code: "c", message: "m" });
events.emit("bulk.worked", { id: "1", action: "rerun", done: 1, skipped: 1, failed: 1 });
const gauges = new Gauges(async () =>
  (
    [
      "depth",
      "age",
      "unserved",
      "throttled",
      "slots",
      "executing",
      "blocked",
      "paused",
      "pause_age",
      "bulk_left",
      "bulk_idle",
      "workers",
    ] as const
  ).map((gauge) => {
    return { gauge, first: "f", second: "s", value: 1 };
  }),
);
const { types, series } = readExposition(metrics.text() + (await gauges.text()));
metrics.close();

const baseOf = (name: string): string => (types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ""));
const labelsOf = new Map<string, Set<string>>();
for (const key of series.keys()) {
  const base = baseOf(/^[a-z_]+/.exec(key)![0]);
  const labels = labelsOf.get(base) ?? new Set(["instance", "job"]);
  for (const [, label = ""] of key.matchAll(/([a-z_]+)="/g)) labels.add(label);
  labelsOf.set(base, labels);
}

/** What is wrong with the metrics and labels that this expression names. */
function problemsOf(expression: string): string[] {
  const found: string[] = [];
  const names = [...expression.matchAll(/\b(?:workflow|pawl)_[a-z_]+/g)].map(([name]) => baseOf(name));
  if (names.length === 0) found.push(`no metric in ${expression}`);
  for (const name of names) if (!types.has(name)) found.push(`there is no ${name}`);
  const known = new Set(names.flatMap((name) => [...(labelsOf.get(name) ?? [])]));
  const used = [
    ...[...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/)),
    ...[...expression.matchAll(/([a-z_]+)=~?"/g)].map(([, label = ""]) => label),
  ];
  for (const label of used) if (!known.has(label)) found.push(`${label} is no label of ${names.join(", ")}`);
  return found;
}

const dashboard = JSON.parse(readFileSync(join(root, "docs/grafana-dashboard.json"), "utf8")) as {
  panels: { title: string; targets: { expr: string }[] }[];
};
const onDashboard = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
const rules = readFileSync(join(root, "docs/alerts.yml"), "utf8");
const alerts = [...rules.matchAll(/ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/g)].map(
  ([, block, line]) => block ?? line ?? "",
);

describe("the dashboard and the alert rules", () => {
  it.each([...onDashboard, ...alerts])("name only metrics and labels that there are: %s", (expression) => {
    expect(problemsOf(expression)).toEqual([]);
  });

  it("would be found wrong by that", () => {
    expect(problemsOf("rate(pawl_claim_total[5m])")).toEqual(["there is no pawl_claim_total"]);
    expect(problemsOf("sum by (queue) (pawl_workers)")).toEqual(["queue is no label of pawl_workers"]);
    expect(alerts.length).toBe(rules.match(/- alert:/g)!.length);
  });

  it("show every metric that there is", () => {
    const shown = new Set(
      onDashboard.flatMap((expression) =>
        [...expression.matchAll(/\b(?:workflow|pawl)_[a-z_]+/g)].map(([name]) => baseOf(name)),
      ),
    );
    expect([...types.keys()].filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe("docs/observability.md", () => {
  it("lists every metric with its labels, and no other", () => {
    const rows = [
      ...readPage("docs/observability.md").matchAll(
        /^\| `((?:workflow|pawl)_[a-z_]+)(?:\{([a-z_, ]+)\})?` /gm,
      ),
    ];
    const listed = new Map(rows.map(([, name = "", labels = ""]) => [name, labels]));
    const there = new Map(
      [...types.keys()].map((name) => {
        const labels = [...(labelsOf.get(name) ?? [])].filter(
          (label) => !["instance", "job", "le"].includes(label),
        );
        return [name, labels.join(", ")];
      }),
    );
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(there));
  });

  it("lists every event, and no other", () => {
    const rows = [
      ...sectionOf("docs/observability.md", "Events").matchAll(/^\| `([a-z]+(?:\.[a-z_]+)?)` /gm),
    ].map(([, name = ""]) => name);
    let message = "";
    try {
      events.on("none" as never, () => {});
    } catch (error) {
      ({ message } = error as Error);
    }
    const names = message.replace(/^.*the events are /s, "").split(", ");
    expect(rows.toSorted()).toEqual(names.toSorted());
  });
});
