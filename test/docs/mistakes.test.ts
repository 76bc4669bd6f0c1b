import * as pawl from "pawl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { readPage } from "./pages.js";
import { compile, makeProject } from "./program.js";

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
  "unknown-concurrency": (ctx) => ctx.next("start", {}, { concurrency: "cpu" }),
  "unknown-limit": (ctx) => ctx.next("start", {}, { rateLimit: "smpt" }),
};
const machines = Object.entries(steps).map(([name, start]) =>
  pawl.machine({ name, steps: { start: start as (ctx: Ctx) => pawl.Outcome } }),
);
/** What a workflow does wrong. */
let invocations = 0;
const bodies: Record<string, (step: Untyped) => Promise<unknown>> = {
  "same-name": async ({ run }) => {
    for (const euros of [1, 2]) await run!("charge", () => euros);
  },
  "a-promise": ({ run }) => run!("load", Promise.resolve(1)),
  "a-map": ({ run }) => run!("load", () => new Map()),
  "no-time": ({ sleep }) => sleep!("5m"),
  "a-space": ({ run }) => run!("load user", () => 1),
  "invoke-refused": ({ invoke }) => invoke!("child", picky, {}),
  "invoke-function": ({ invoke }) => invoke!("child", () => 1),
  "retry-number": ({ run }) => run!("charge", () => 1, { retry: 5 }),
  "attempts-alone": ({ run }) => run!("charge", () => 1, { attempts: 5 }),
  "no-such-kind": ({ run }) =>
    run!("charge", () => 1, { retry: { attempts: 2, backoff: { kind: "exponential" } } }),
  "misspelt-timeout": ({ waitForEvent }) => waitForEvent!("paid", { timeOut: "1h" }),
  "match-value": ({ waitForEvent }) => waitForEvent!("paid", { match: 7 }),
  "same-wait": async ({ waitForEvent }) => {
    for (const _ of [1, 2]) await waitForEvent!("paid", { timeout: 0 });
  },
  "timeout-words": ({ waitForEvent }) => waitForEvent!("paid", { timeout: "1 hour" }),
  chance: async ({ run, sleep }) => {
    if (invocations++ === 0) await sleep!("pause", 0);
    else await run!("pause", () => 1);
    await sleep!("night", 100);
  },
};
type Untyped = Record<string, (...given: unknown[]) => Promise<unknown>>;
const workflows = Object.entries(bodies).map(([name, body]) =>
  pawl.workflow({ name, run: ({ step }) => body(step as never) as Promise<null> }),
);
const forgetful = pawl.workflow({
  name: "forgetful",
  run: async ({ step }) => {
    // oxlint-disable-next-line typescript/no-floating-promises -- this is the mistake
    step.run("mail", () => new Promise<void>(() => {}));
    return "returned";
  },
});
const worker = pawl.serve([resize, ...machines, ...workflows, forgetful], {
  url,
  logger,
  limits: { smtp: { allowed: 10, period: "1s" }, gpu: { concurrent: 3 } },
});
beforeAll(() => worker.ready);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

/** What a machine's only step, or a workflow, is told. */
async function fail(name: string): Promise<never> {
  const { runId } = await client.start(name, {});
  const error = await client.result(runId, { timeout: "100s" }).catch((thrown: unknown) => thrown);
  if (!(error instanceof pawl.RunFailed)) throw error;
  throw Object.assign(new Error(error.error.message), { code: error.error.code });
}

async function ended(): Promise<string> {
  const { runId } = await client.start(resize, { size: 1 });
  await client.result(runId);
  return runId;
}

const fairness = "concurrency-and-fairness";
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
    [fairness, "an unknown limit", "InvalidOption", () => start({ concurrency: "cpu" })],
    [fairness, "an unknown limit of a step", "InvalidOutcome", () => fail("unknown-concurrency")],
    [fairness, "a limit with a rate only", "InvalidOption", () => start({ concurrency: "smtp" })],
    [fairness, "a limit without a rate", "InvalidOption", () => start({ rateLimit: "gpu" })],
    [fairness, "no key", "InvalidOption", () => start({ concurrency: { name: "gpu" } })],
    [fairness, "a limit of nothing", "InvalidOption", () => client.limits.set("gpu", {} as never)],
    ["cancellation", "a run that has ended", "RunEnded", async () => client.runs.cancel(await ended())],
    ["workflows", "the same name twice", "InvalidOption", () => fail("same-name")],
    ["workflows", "a promise as function", "InvalidOption", () => fail("a-promise")],
    ["workflows", "a Map as result", "StepFailed", () => fail("a-map")],
    ["workflows", "a sleep without a name", "InvalidOption", () => fail("no-time")],
    ["workflows", "a name with a space", "InvalidOption", () => fail("a-space")],
    ["workflows", "an input that is refused", "InvalidInput", () => fail("invoke-refused")],
    ["workflows", "a function invoked", "InvalidOption", () => fail("invoke-function")],
    ["steps-and-retries", "a number as retry", "InvalidOption", () => fail("retry-number")],
    ["steps-and-retries", "attempts alone", "InvalidOption", () => fail("attempts-alone")],
    ["steps-and-retries", "no such kind", "InvalidOption", () => fail("no-such-kind")],
    ["events", "a misspelt option", "InvalidOption", () => fail("misspelt-timeout")],
    ["events", "a value as match", "InvalidOption", () => fail("match-value")],
    ["events", "the same wait twice", "InvalidOption", () => fail("same-wait")],
    ["events", "a timeout in words", "InvalidOption", () => fail("timeout-words")],
    ["events", "null as payload", "InvalidInput", () => client.signal("64", "paid", null as never)],
    ["determinism", "another kind by chance", "NondeterministicWorkflow", () => fail("chance")],
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

  it("workflows: a forgotten await", async () => {
    const { runId } = await client.start(forgetful, {});
    expect(await client.result(runId)).toBe("returned");
    expect(await client.runs.steps(runId)).toEqual([]);
  });
});

describe("what a guide calls a compile error is one", async () => {
  const body = (code: string): string =>
    `import { job, signal, workflow } from "pawl";
    export const resize = job({ name: "resize", run: (ctx, input: { size: number }) => input.size });
    export const made = workflow({ name: "a", signals: { paid: signal() }, run: async ({ step }) => ${code} });`;
  const files = {
    right: body('step.invoke("a", resize, { size: 1 })'),
    map: body('void (await step.run("a", () => new Map()))'),
    input: body('step.invoke("a", resize, { size: "1" })'),
    target: body('step.invoke("a", () => 1)'),
    undeclared: body('step.waitForEvent("payed")'),
  };
  const project = Object.entries(files).map(([name, text]) => [`${name}.ts`, text]);
  const complaints = await compile(makeProject(Object.fromEntries(project)));

  it.each(Object.keys(files))("%s", (name) => {
    expect(complaints.includes(`${name}.ts(`)).toBe(name !== "right");
  });
});
