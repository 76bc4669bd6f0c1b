import * as pawl from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { readPage } from "./pages.js";

// The guides quote what Pawl says to a mistake. Each is made here, and the guide must have the words.

const { url } = await testDatabase();
const client = pawl.connect(url);
const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

type Ctx = pawl.StepContext<string, object>;
const size = 1n as unknown as number;
const resize = pawl.job({ name: "resize", run: (_ctx, input: { size: number }) => input.size });
const picky = pawl.job({
  name: "picky",
  input: {
    "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "never" }] }) },
  },
  run: () => null,
});
/** What a step does wrong: an outcome that types would refuse. */
const steps: Record<string, (ctx: Ctx) => unknown> = {
  "no-return": (ctx) => void ctx.awaitSignal("paid", "start", {}),
  "misspelt-option": (ctx) => ctx.awaitSignal("paid", "start", {}, { timeOut: "1h" } as object),
  "next-delay": (ctx) => ctx.next("start", {}, { delay: "1s" } as object),
  "spawn-definition": (ctx) => ctx.spawn("start", [resize] as never, {}),
  "spawn-one": (ctx) => ctx.spawn("start", pawl.child(resize, { size: 1 }) as never, {}),
  "spawn-bigint": (ctx) => ctx.spawn("start", [pawl.child(resize, { size })], {}),
  "spawn-refused": (ctx) => ctx.spawn("start", [pawl.child(picky, {})], {}),
  "unknown-limit": (ctx) => ctx.next("start", {}, { rateLimit: "smpt" }),
};
const machines = Object.entries(steps).map(([name, start]) =>
  pawl.machine({ name, steps: { start: start as (ctx: Ctx) => pawl.Outcome } }),
);
const worker = pawl.serve([resize, ...machines], {
  url,
  logger,
  limits: { smtp: { allowed: 10, period: "1s" } },
});
beforeAll(() => worker.ready);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

/** What a machine's only step is told. */
async function fail(name: string): Promise<never> {
  const { runId } = await client.start(name, {});
  const error = await client.result(runId, { timeout: "10s" }).catch((thrown: unknown) => thrown);
  if (!(error instanceof pawl.RunFailed)) throw error;
  throw Object.assign(new Error(error.error.message), { code: error.error.code });
}

async function ended(): Promise<string> {
  const { runId } = await client.start(resize, { size: 1 });
  await client.result(runId);
  return runId;
}

const start = (options: object): Promise<unknown> => client.start(resize, { size: 1 }, options);

describe("what a guide says to a mistake is what Pawl says", () => {
  it.each<[page: string, mistake: string, code: pawl.ErrorCode, make: () => Promise<unknown>]>([
    ["signals", "no return", "InvalidOutcome", () => fail("no-return")],
    ["signals", "a misspelt option", "InvalidOutcome", () => fail("misspelt-option")],
    ["signals", "null as payload", "InvalidInput", () => client.signal("64", "paid", null as never)],
    ["signals", "a run that has ended", "RunEnded", async () => client.signal(await ended(), "paid")],
    ["timers", "words as duration", "InvalidOption", () => start({ delay: "5 minutes" })],
    ["timers", "delay and at", "InvalidOption", () => start({ delay: 1, at: new Date() })],
    ["timers", "at tomorrow", "InvalidOption", () => start({ at: "tomorrow" })],
    ["timers", "a delay of next", "InvalidOutcome", () => fail("next-delay")],
    ["children", "a definition as child", "InvalidOutcome", () => fail("spawn-definition")],
    ["children", "one child", "InvalidOutcome", () => fail("spawn-one")],
    ["children", "no JSON", "NotSerializable", () => fail("spawn-bigint")],
    ["children", "an input that is refused", "InvalidInput", () => fail("spawn-refused")],
    ["keys-and-limits", "an unknown limit", "InvalidOption", () => start({ rateLimit: "smpt" })],
    ["keys-and-limits", "an unknown limit of a step", "InvalidOutcome", () => fail("unknown-limit")],
    ["keys-and-limits", "too much weight", "InvalidOption", () => start({ rateLimit: "smtp", weight: 11 })],
    ["keys-and-limits", "weight alone", "InvalidOption", () => start({ weight: 2 })],
    ["keys-and-limits", "no key", "InvalidOption", () => start({ rateLimit: { name: "smtp" } })],
    ["keys-and-limits", "a number", "InvalidOption", () => start({ partitionKey: 42 })],
    ["cancellation", "a run that has ended", "RunEnded", async () => client.runs.cancel(await ended())],
    [
      "cancellation",
      "a text as options",
      "InvalidOption",
      async () => client.runs.cancel("64", "why" as never),
    ],
  ])("%s: %s", async (page, _mistake, code, make) => {
    const error: unknown = await make().then(
      () => "nothing was thrown",
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code });
    const text = readPage(`docs/${page}.md`).replaceAll(/^ *```.*?^ *```$/gms, "");
    expect(text).toContain(`\`${code}\``);
    const message = (error as Error).message.replaceAll(/\brun \d+/g, "run 64");
    // The guide may leave out how a message ends.
    const quoted = [...text.matchAll(/`([^`]+)`/g)].map(([, words = ""]) => words);
    const isQuoted = quoted.some((words) => words.length > 30 && message.startsWith(words));
    expect(isQuoted || code === "InvalidInput", message).toBe(true);
  });
});
