import { connect, job, NonRetryable, type Run, serve, signal, type Step, workflow } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, startPawl } from "./pawl.js";

type Event = { event: "run"; run: Run } | { event: "step"; runId: string; step: Step };

const { url } = await testDatabase();
const order = workflow({
  name: "order",
  signals: { paid: signal<{ euros: number }>() },
  run: async ({ step }) => {
    await step.run("reserve", () => 1);
    const paid = await step.waitForEvent("paid");
    return paid.euros;
  },
});
const fail = job({
  name: "fail",
  run: () => {
    throw new NonRetryable("no");
  },
});
const failLater = workflow({
  name: "fail-later",
  run: async ({ step }) => {
    await step.waitForEvent("go");
    throw new NonRetryable("late");
  },
});
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const worker = serve([order, fail, failLater], { url, logger: silent });
await worker.ready;
const client = connect(url);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

/** The events in whole lines of JSON. */
const eventsOf = (text: string): Event[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Event);

it("a tail follows a run, its steps too, until it ends", async () => {
  const { runId } = await client.start(order);
  const tail = startPawl(["runs", "tail", runId], { url });
  await until("it waits", () => tail.stdout().includes("awaiting_signal"));
  await client.signal(runId, "paid", { euros: 25 });
  const { code, stdout, stderr } = await tail.ended;
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.trimEnd().split("\n");
  for (const line of lines) expect(line).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z  ${runId}  `));
  const texts = lines.map((line) => line.split("  ").slice(2).join("  "));
  expect(texts[0]).toMatch(/^step "reserve" \(run\) completed after \d+ms$/);
  expect(texts).toContain("order@1 awaiting_signal");
  expect(texts.at(-2)).toMatch(/^step "paid" \(wait\) completed after /);
  expect(texts.at(-1)).toMatch(/^order@1 completed after .*: 25$/);
});

it("a tail of a run that fails ends with 1, and of none with 1", async () => {
  const { runId } = await client.start(fail);
  const { code, stdout } = await pawl(["runs", "tail", runId, "--json"], { url });
  expect(code).toBe(1);
  expect(eventsOf(stdout).at(-1)).toMatchObject({
    event: "run",
    run: { runId, status: "failed", error: { message: "no" } },
  });
  expect(await pawl(["runs", "tail", "1"], { url })).toMatchObject({
    code: 1,
    stderr: 'pawl: there is no run "1"\n',
  });
});

it("a tail of all runs tells of new ones until it is interrupted", async () => {
  const old = await client.start(fail);
  await client.result(old.runId).catch(() => {});
  const tail = startPawl(["runs", "tail", "--name", "fail", "--json"], { url });
  const events = (): Event[] => eventsOf(tail.stdout());
  // It has begun once it tells of a run; which of these is the first it knows is its own affair.
  await until("it tells of a new run", async () => {
    const { runId } = await client.start(fail);
    await client.result(runId).catch(() => {});
    return events().some((event) => event.event === "run" && event.run.status === "failed");
  });
  const last = await client.start(fail);
  const other = await client.start(order);
  await until("it tells of the last", () =>
    events().some(
      (event) => event.event === "run" && event.run.runId === last.runId && event.run.status === "failed",
    ),
  );
  const told = new Set(events().map((event) => (event.event === "run" ? event.run.runId : event.runId)));
  expect(told).not.toContain(old.runId);
  expect(told).not.toContain(other.runId);
  tail.process.kill("SIGINT");
  await tail.ended;
});

it("a tail of failures tells of no run that began before it and fails now", async () => {
  const early = await client.start(failLater);
  const tail = startPawl(["runs", "tail", "--error", "NonRetryable", "--json"], { url });
  const told = (): string[] =>
    eventsOf(tail.stdout()).flatMap((event) => (event.event === "run" ? [event.run.runId] : []));
  const failOne = async (): Promise<string> => {
    const { runId } = await client.start(fail);
    await client.result(runId).catch(() => {});
    return runId;
  };
  await until("it tells of a new run", async () => (await failOne()) !== "" && told().length > 0);
  await client.signal(early.runId, "go");
  await client.result(early.runId).catch(() => {});
  const last = await failOne();
  await until("it tells of the last", () => told().includes(last));
  expect(told()).not.toContain(early.runId);
  tail.process.kill("SIGINT");
  await tail.ended;
});
