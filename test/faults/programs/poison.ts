/**
 * Steps that do the worst that user code can do, each as a job, as a step of a machine and as a step of a workflow. What ends the
 * process does so at the first attempt alone. Served by `worker.ts`, started by `poison.test.ts`.
 */

import { job, machine, type, workflow } from "pawl";
import { tell, told } from "./effects.js";

/** A value that answers every question about it with an error. */
function untouchable(): unknown {
  const refuse = (): never => {
    throw new Error("do not touch");
  };
  const traps = Object.fromEntries(
    Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse]),
  ) as ProxyHandler<object>;
  return new Proxy({}, traps);
}

function circular(): unknown {
  const self: Record<string, unknown> = {};
  self["self"] = self;
  return self;
}

/** An object that cannot be awaited. */
function unawaitable(): unknown {
  return new Proxy(
    {},
    {
      get: (_target, name) => {
        if (name === "then") throw new Error("no then");
      },
    },
  );
}

function fillMemory(): never {
  const kept: unknown[] = [];
  for (;;) kept.push(Array.from({ length: 1_000 }, () => ({ of: kept.length })));
}

/** Rejects with what is no error. */
const reject = (value: unknown) => (): Promise<never> =>
  new Promise((_resolve, refuse: (value: unknown) => void) => refuse(value));

/** What each does. */
const acts = {
  undefined: reject(undefined),
  null: reject(null),
  text: reject("only a text"),
  proxy: () => reject(untouchable())(),
  never: () => new Promise(() => {}),
  zeroMessage: () => {
    throw new Error("before\u0000behind \uD800");
  },
  longMessage: () => {
    throw new Error("long ".repeat(100_000));
  },
  zeroResult: () => ({ text: "before\u0000behind" }),
  large: () => "x".repeat(2 * 1024 * 1024),
  circular,
  bigint: () => ({ n: 1n }),
  function: () => () => 1,
  proxyResult: untouchable,
  toJsonThrows: () => ({
    toJSON: () => {
      throw new Error("no JSON of this");
    },
  }),
  getterThrows: () => ({
    get value(): never {
      throw new Error("no value");
    },
  }),
  thenThrows: unawaitable,
  deep: () => {
    let value: unknown = 0;
    for (let depth = 0; depth < 200_000; depth++) value = [value];
    return value;
  },
  exit: () => process.exit(3),
  rejection: () => {
    void Promise.reject(new Error("nobody catches this"));
    return new Promise(() => {});
  },
  uncaught: () => {
    setImmediate(() => {
      throw new Error("nobody catches this either");
    });
    return new Promise(() => {});
  },
  memory: fillMemory,
} satisfies Record<string, () => unknown>;

export type Act = keyof typeof acts;

/** Those that end the process. */
export const deadly: readonly Act[] = ["exit", "rejection", "uncaught", "memory"];
export const harmful = (Object.keys(acts) as Act[]).filter((act) => !deadly.includes(act));

async function perform(act: Act, runId: string, attempt: number, crashes: number): Promise<never> {
  await tell(runId, act, attempt);
  // Only the first time, else the fleet would have nothing else to do.
  if (deadly.includes(act) && crashes > 0) return "survived" as never;
  return (await acts[act]()) as never;
}

const poisonJob = job({
  name: "poison-job",
  maxAttempts: 4,
  backoff: () => 1,
  run: (ctx, { act }: { act: Act }) => perform(act, ctx.runId, ctx.attempt, ctx.attempt),
});

const poisonMachine = machine({
  name: "poison-machine",
  maxCrashes: 20,
  state: type<{ act: Act }>(),
  steps: {
    start: async (ctx) => ctx.done(await perform(ctx.state.act, ctx.runId, ctx.attempt, ctx.attempt)),
  },
});

const poisonWorkflow = workflow({
  name: "poison-workflow",
  maxCrashes: 20,
  run: async ({ step, runId }, { act }: { act: Act }) =>
    step.run("poison", ({ attempt }) => performOnce(act, runId, attempt), {
      retry: { attempts: 2, backoff: { kind: "fixed", base: 1 } },
    }),
});

/** A workflow's step does not count crashes: the ledger does. */
async function performOnce(act: Act, runId: string, attempt: number): Promise<never> {
  const before = await told(runId);
  return perform(act, runId, attempt, before);
}

export const poisons = [poisonJob, poisonMachine, poisonWorkflow] as const;
