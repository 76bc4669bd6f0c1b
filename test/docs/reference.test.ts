import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as pawl from "pawl";
import { describe, expect, it } from "vitest";
import { toMilliseconds } from "../../packages/pawl/dist/values/duration.js";
import { checkServe } from "../../packages/pawl/dist/worker/options.js";
import { testDatabase } from "../support/database.js";
import { readPage, root, rowNames, sectionOf } from "./pages.js";

const client = pawl.connect((await testDatabase()).url);
const definition = pawl.job({ name: "a", run: () => null });

describe("docs/errors.md", () => {
  it("lists every code of Pawl, and no other", () => {
    const codes = Object.values(pawl).flatMap((exported) =>
      typeof exported === "function" && exported.prototype instanceof pawl.PawlError
        ? [exported.prototype.name]
        : [],
    );
    expect(codes.length).toBeGreaterThan(10);
    expect(rowNames(readPage("docs/errors.md")).toSorted()).toEqual(codes.toSorted());
  });
});

describe("docs/configuration.md", () => {
  const wrong = { wrong: true } as object;
  const common = rowNames(sectionOf("docs/configuration.md", "Definitions"));
  it.each([
    ["connect", () => pawl.connect(undefined, wrong)],
    ["serve", () => pawl.serve([definition], wrong)],
    ["migrate", () => pawl.migrate(wrong)],
    ["fork", () => pawl.fork(wrong as pawl.ForkOptions)],
    ["hold", () => pawl.hold(wrong)],
    ["hold", () => pawl.hold.release(wrong)],
    ["hold", () => pawl.fork.adopt(wrong)],
    ["hold", () => pawl.databaseState(wrong)],
    ["start", () => client.start(definition, null, wrong)],
    ["result", () => client.result("64", wrong)],
    ["runs.list", () => client.runs.list(wrong)],
    ["runs.count", () => client.runs.count(wrong)],
    ["signal", () => client.signal("64", "a", {}, wrong)],
    ["runs.cancel", () => client.runs.cancel("64", wrong)],
    ["runs.pause", () => client.runs.pause("64", wrong)],
    ["runs.pause", () => client.queues.pause("a", wrong)],
    ["definitions.pause", () => client.definitions.pause("a", wrong)],
    ["queues.send", () => client.queues.send("a", 1, wrong)],
    ["queues.receive", () => client.queues.receive("a", wrong)],
    ["topics.publish", () => client.topics.publish("a", 1, wrong)],
    ["subscriptions.list", () => client.subscriptions.list(wrong)],
    ["schedules.set", () => client.schedules.set("a", { mistaken: true, start: definition } as never)],
    ["schedules.backfill", () => client.schedules.backfill("a", wrong as pawl.BackfillOptions)],
    ["limits.set", () => client.limits.set("a", wrong as pawl.LimitOptions)],
  ])("lists every option of %s, and no other", async (section, call) => {
    expect(rowNames(sectionOf("docs/configuration.md", section)).toSorted()).toEqual(await allowedBy(call));
  });

  it.each([
    ["workflow", () => pawl.workflow({ name: "a", run: async () => null, ...wrong })],
    ["job", () => pawl.job({ name: "a", run: () => null, ...wrong })],
    ["machine", () => pawl.machine({ name: "a", steps: { start: (ctx) => ctx.done() }, ...wrong })],
  ])("lists every option of %s, and no other", async (section, call) => {
    const listed = [...common, ...rowNames(sectionOf("docs/configuration.md", section))];
    expect(listed.toSorted()).toEqual(await allowedBy(call));
  });
});

describe("docs/configuration.md: the defaults of serve", () => {
  const { definitions: _, queues, limits, schedules, ...settings } = checkServe([definition], {});
  const documented = new Map(
    [...sectionOf("docs/configuration.md", "serve").matchAll(/^\| `(\w+)` +\| ([^|]*[^| ]) +\|/gm)].map(
      ([, name = "", value = ""]) => [name, value],
    ),
  );

  it.each([
    ["schema", "schema"],
    ["lease", "leaseMs"],
    ["heartbeat", "heartbeatMs"],
    ["pollInterval", "pollMs"],
    ["maxPollInterval", "maxPollMs"],
    ["prefetch", "prefetch"],
    ["minDemand", "minDemand"],
    ["reapInterval", "reapMs"],
    ["sweepInterval", "sweepMs"],
    ["drainTimeout", "drainMs"],
    ["maxStepDuration", "maxStepMs"],
    ["maxPayloadBytes", "maxPayloadBytes"],
  ] as const)("%s is what the guide says", (option, setting) => {
    expect(valueOf(documented.get(option)!, option)).toBe(settings[setting]);
  });

  it("queues and limits are what the guide says", () => {
    expect(documented.get("queues")).toBe(`the queue of each definition, ${queues.get("default")}`);
    expect(documented.get("limits")).toBe("none");
    expect(limits).toEqual([]);
    expect(documented.get("schedules")).toBe("none");
    expect(schedules).toEqual([]);
  });
});

/** The value of a cell: `"10s"`, `0`, 1,048,576 or none. */
function valueOf(cell: string, option: string): unknown {
  if (cell === "none") return null;
  const value: unknown = JSON.parse(cell.replaceAll(/[`,]/g, ""));
  return typeof value === "string" && option !== "schema" ? toMilliseconds(value, option) : value;
}

/** The options that a call allows, as it says itself when it is given a wrong one. */
async function allowedBy(call: () => unknown): Promise<string[]> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof pawl.InvalidOption)) throw error;
    return error.message
      .replace(/^.*; allowed: /s, "")
      .split(", ")
      .toSorted();
  }
  throw new Error("a wrong option was taken");
}

describe("the source", () => {
  it.each(["pawl", "server", "local-postgres"])("every file of %s says what it is for", (name) => {
    const folder = `packages/${name}/src`;
    const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(ts|sql)$/.test(file))
      .map((file) => `${folder}/${file}`);
    // SQL says it after the marker of its first line.
    const header = /^(?:\/\*\*|\/\/|-- pawl: .*\n-- )/;
    const silent = files.filter((file) => !header.test(readFileSync(join(root, file), "utf8")));
    expect(silent).toEqual([]);
  });
});

describe("ARCHITECTURE.md", () => {
  const source = join(root, "packages/pawl/src");
  const map = readPage("ARCHITECTURE.md");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const migrations = files.filter((file) => file.endsWith(".sql"));
  const sql = migrations.map((file) => readFileSync(join(source, file), "utf8")).join("\n");
  const created = (kind: string): string[] =>
    [...sql.matchAll(new RegExp(`^create ${kind} (\\w+)`, "gm"))].map(([, name = ""]) => name);

  it.each(["table", "index", "unique index", "or replace view"])("names every %s of the schema", (kind) => {
    expect(created(kind).length).toBeGreaterThan(0);
    expect(created(kind).filter((name) => !map.includes(`\`${name}\``))).toEqual([]);
  });
});
