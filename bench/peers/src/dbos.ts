/**
 * DBOS Transact. Workflows are started directly, 100 in flight, or through a queue with
 * `workerConcurrency`, as its documentation recommends; both are measured, and the better one
 * counts. The queue is polled every 10 ms instead of every second, and the pool of the system
 * database has 20 connections instead of 10: of 10, 20 and 50 that measured best. LISTEN/NOTIFY is
 * on, as it comes.
 */

import { DBOS, DBOSClient } from "@dbos-inc/dbos-sdk";
import {
  enqueueing,
  inParallel,
  input,
  oneByOne,
  recorded,
  stepsPerWorkflow,
  Tally,
  Timers,
  WakeUps,
} from "./measuring.ts";
import { contend, type Order } from "./program.ts";
import { rowCounter } from "./rows.ts";

type Input = typeof input;

const name = "bench-peers";
const queueName = "bench";
const poolSize = 20;
const minPollingIntervalMs = 10;

async function launch({ databaseUrl, concurrency }: Order): Promise<void> {
  DBOS.setConfig({
    name,
    systemDatabaseUrl: databaseUrl,
    systemDatabasePoolSize: poolSize,
    applicationVersion: "1",
    logLevel: "error",
  });
  await DBOS.launch();
  await DBOS.registerQueue(queueName, { workerConcurrency: concurrency, minPollingIntervalMs });
}

/** Enqueues while no worker is there. */
async function enqueueApart({ databaseUrl, count }: Order, workflowName: string): Promise<void> {
  const client = await DBOSClient.create({
    systemDatabaseUrl: databaseUrl,
    systemDatabasePoolSize: poolSize,
    applicationName: name,
  });
  await inParallel(count, 100, () => client.enqueue({ queueName, workflowName }, input));
  await client.destroy();
}

const succeeded = (url: string, workflowName: string): Promise<() => Promise<number>> =>
  rowCounter(
    url,
    `select count(*) from dbos.workflow_status where status = 'SUCCESS' and name = '${workflowName}'`,
  );

function tenSteps(tally: Tally, workflowName: string) {
  const run = async (given: Input) => {
    tally.begin();
    let visited = given.visited;
    for (let index = 0; index < stepsPerWorkflow; index++) {
      visited = await DBOS.runStep(async () => visited + 1, { name: `visit-${index}` });
    }
    tally.end();
    return { visited };
  };
  return DBOS.registerWorkflow(run, { name: workflowName });
}

contend({
  async workflow_steps(order) {
    const { databaseUrl, variant, count, warmUp, concurrency } = order;
    const tally = new Tally();
    const warm = tenSteps(new Tally(), "warm-up");
    const counted = tenSteps(tally, "counted");
    await launch(order);
    const execute = async (workflow: typeof counted) =>
      (await DBOS.startWorkflow(workflow)(input)).getResult();
    await inParallel(warmUp, concurrency, () => execute(warm));
    const found = await succeeded(databaseUrl, "counted");
    if (variant === "started") {
      await inParallel(count, concurrency, () => execute(counted));
    } else {
      await DBOS.shutdown();
      await enqueueApart(order, "counted");
      await launch(order);
    }
    return recorded(tally, count, stepsPerWorkflow, () => tally.firstMs, found);
  },

  /**
   * Measured from the first job that begins: its queue runner cannot be started apart from all
   * else.
   */
  async jobs_drained(order) {
    const tally = new Tally();
    const run = async (_given: Input) => {
      tally.begin();
      tally.end();
      return null;
    };
    DBOS.registerWorkflow(run, { name: "counted" });
    const warm = DBOS.registerWorkflow(async (_given: Input) => null, { name: "warm-up" });
    await launch(order);
    await inParallel(order.warmUp, order.concurrency, async () =>
      (await DBOS.startWorkflow(warm)(input)).getResult(),
    );
    await DBOS.shutdown();
    await enqueueApart(order, "counted");
    const found = await succeeded(order.databaseUrl, "counted");
    await launch(order);
    return recorded(tally, order.count, 1, () => tally.firstMs, found);
  },

  async enqueued(order) {
    await launch(order);
    await DBOS.shutdown();
    return enqueueing(
      order,
      (count) => enqueueApart({ ...order, count }, "counted"),
      await rowCounter(
        order.databaseUrl,
        "select count(*) from dbos.workflow_status where status = 'ENQUEUED'",
      ),
    );
  },

  async result_latency(order) {
    const run = (given: Input) =>
      DBOS.runStep(async () => ({ visited: given.visited + 1 }), { name: "visit" });
    const oneStep = DBOS.registerWorkflow(run, { name: "one-step" });
    await launch(order);
    return oneByOne(order, async () => {
      const { visited } = await (await DBOS.startWorkflow(oneStep)(input)).getResult();
      if (visited !== 1) throw new Error("a wrong result");
    });
  },

  async timer_lateness(order) {
    const timers = new Timers(order);
    const run = async (dueMs: number) => {
      await DBOS.sleep(dueMs - Date.now());
      timers.fired(dueMs);
    };
    const sleeper = DBOS.registerWorkflow(run, { name: "sleeper" });
    await launch(order);
    return timers.measure((due) => DBOS.startWorkflow(sleeper)(due.getTime()));
  },

  async signal_wakeup(order) {
    const wakeUps = new WakeUps();
    const run = async () => {
      wakeUps.waiting();
      const message = await DBOS.recv<{ visited: number }>("go", 60);
      if (message === null) throw new Error("no signal came");
      wakeUps.wokenUp();
    };
    const waiter = DBOS.registerWorkflow(run, { name: "waiter" });
    await launch(order);
    return wakeUps.measure(
      order,
      async () => (await DBOS.startWorkflow(waiter)()).workflowID,
      (workflowId) => DBOS.send(workflowId, { visited: 1 }, "go"),
    );
  },
});
