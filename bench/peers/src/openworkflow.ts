/**
 * OpenWorkflow with its Postgres backend. Its one knob is the worker's `concurrency`; how often it
 * polls (100 ms, growing to 1 s) and how often `result()` looks (1 s) cannot be set. The pool is
 * its own.
 */

import { OpenWorkflow } from "openworkflow";
import { BackendPostgres } from "openworkflow/postgres";
import {
  enqueueing,
  inParallel,
  input,
  oneByOne,
  recorded,
  stepsPerWorkflow,
  Tally,
  Timers,
  until,
  WakeUps,
} from "./measuring.ts";
import { contend } from "./program.ts";
import { rowCounter } from "./rows.ts";

type Input = typeof input;

/** Of single starts, which are all that it has. */
const callers = 100;

async function open(databaseUrl: string): Promise<OpenWorkflow> {
  const backend = await BackendPostgres.connect(forPostgresJs(databaseUrl), { namespaceId: "bench" });
  return new OpenWorkflow({ backend });
}

/** Its driver takes the directory of a socket from the environment, not from the URL. */
function forPostgresJs(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  const socket = url.searchParams.get("host");
  if (socket === null) return databaseUrl;
  Object.assign(process.env, { PGHOST: socket, PGPORT: url.port, PGUSER: url.username });
  return `postgres://${url.pathname}`;
}

const completed = (url: string, name: string): Promise<() => Promise<number>> =>
  rowCounter(
    url,
    `select count(*) from openworkflow.workflow_runs where status in ('completed', 'succeeded') and workflow_name = '${name}'`,
  );

function tenSteps(client: OpenWorkflow, tally: Tally, name: string) {
  return client.defineWorkflow({ name }, async ({ input: given, step }: TenStepsParams) => {
    tally.begin();
    let visited = given.visited;
    for (let index = 0; index < stepsPerWorkflow; index++) {
      visited = await step.run({ name: `visit-${index}` }, () => visited + 1);
    }
    tally.end();
    return { visited };
  });
}

interface TenStepsParams {
  input: Input;
  step: { run<Output>(config: { name: string }, body: () => Output): Promise<Output> };
}

contend({
  async workflow_steps({ databaseUrl, count, warmUp, concurrency }) {
    const client = await open(databaseUrl);
    const tally = new Tally();
    const warm = tenSteps(client, new Tally(), "warm-up");
    const counted = tenSteps(client, tally, "counted");
    const warmed = await completed(databaseUrl, "warm-up");
    const found = await completed(databaseUrl, "counted");
    await inParallel(warmUp, callers, () => warm.run(input));
    const worker = client.newWorker({ concurrency });
    await worker.start();
    await until(async () => (await warmed()) === warmUp);
    await worker.stop();

    await inParallel(count, callers, () => counted.run(input));
    await worker.start();
    return recorded(tally, count, stepsPerWorkflow, () => tally.firstMs, found);
  },

  async jobs_drained({ databaseUrl, count, warmUp, concurrency }) {
    const client = await open(databaseUrl);
    const tally = new Tally();
    const warm = client.defineWorkflow({ name: "warm-up" }, () => null);
    const counted = client.defineWorkflow({ name: "counted" }, () => {
      tally.end();
      return null;
    });
    const warmed = await completed(databaseUrl, "warm-up");
    const found = await completed(databaseUrl, "counted");
    await inParallel(warmUp, callers, () => warm.run());
    const worker = client.newWorker({ concurrency });
    await worker.start();
    await until(async () => (await warmed()) === warmUp);
    await worker.stop();

    await inParallel(count, callers, () => counted.run());
    const beginMs = performance.now();
    await worker.start();
    return recorded(tally, count, 1, () => beginMs, found);
  },

  async enqueued(order) {
    const client = await open(order.databaseUrl);
    const counted = client.defineWorkflow<Input, null>({ name: "counted" }, () => null);
    return enqueueing(
      order,
      (count) => inParallel(count, callers, () => counted.run(input)),
      await rowCounter(order.databaseUrl, "select count(*) from openworkflow.workflow_runs"),
    );
  },

  async result_latency(order) {
    const client = await open(order.databaseUrl);
    const oneStep = client.defineWorkflow<Input, { visited: number }>(
      { name: "one-step" },
      ({ input: given, step }) => step.run({ name: "visit" }, () => ({ visited: given.visited + 1 })),
    );
    await client.newWorker({ concurrency: order.concurrency }).start();
    return oneByOne(order, async () => {
      const { visited } = await (await oneStep.run(input)).result();
      if (visited !== 1) throw new Error("a wrong result");
    });
  },

  /** Starts at a time: its sleep takes durations only. */
  async timer_lateness(order) {
    const timers = new Timers(order);
    const client = await open(order.databaseUrl);
    const delayed = client.defineWorkflow<{ dueMs: number }, null>(
      { name: "delayed" },
      ({ input: given }) => {
        timers.fired(given.dueMs);
        return null;
      },
    );
    await client.newWorker({ concurrency: order.concurrency }).start();
    return timers.measure((due) => delayed.run({ dueMs: due.getTime() }, { availableAt: due }));
  },

  async signal_wakeup(order) {
    const wakeUps = new WakeUps();
    const client = await open(order.databaseUrl);
    const waiter = client.defineWorkflow<{ signal: string }, null>(
      { name: "waiter" },
      async ({ input: given, step }) => {
        wakeUps.waiting();
        await step.waitForSignal({ signal: given.signal });
        wakeUps.wokenUp();
        return null;
      },
    );
    await client.newWorker({ concurrency: order.concurrency }).start();
    return wakeUps.measure(
      order,
      async (round) => {
        const signal = `go-${round}`;
        await waiter.run({ signal });
        return signal;
      },
      async (signal) => {
        const { workflowRunIds } = await client.sendSignal({ signal, data: { visited: 1 } });
        if (workflowRunIds.length !== 1) throw new Error("the workflow was not waiting yet");
      },
    );
  },
});
