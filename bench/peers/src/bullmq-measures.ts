/**
 * BullMQ, the same on Redis and on Postgres: the API is one, and the two programs say what is
 * behind it. The worker's concurrency is 100, in the range that its documentation recommends for
 * jobs that wait for input and output; completed jobs are kept, as it comes, and counted.
 */

import { performance } from "node:perf_hooks";
import type { BackendClasses, IQueueBackend } from "bullmq";
import { enqueueing, inBatches, input, oneByOne, recorded, Tally, Timers, until } from "./measuring.ts";
import type { Measures, Order } from "./program.ts";

export interface Behind<Backend extends IQueueBackend, Connection> {
  readonly classes: BackendClasses<Backend, Connection>;
  readonly connectionOf: (order: Order) => Connection;
}

const jobs = (size: number) => Array.from({ length: size }, () => ({ name: "noop", data: input }));

export function bullmqMeasures<Backend extends IQueueBackend, Connection>({
  classes: { Queue, QueueEvents, Worker },
  connectionOf,
}: Behind<Backend, Connection>): Measures {
  return {
    async jobs_drained(order) {
      const { count, warmUp, concurrency } = order;
      const connection = connectionOf(order);
      const open = async (name: string) => {
        const queue = new Queue(name, { connection });
        await queue.waitUntilReady();
        return queue;
      };
      const warm = await open("warm-up");
      const queue = await open("counted");
      await warm.addBulk(jobs(warmUp));
      const warmWorker = new Worker("warm-up", async () => null, { connection, concurrency });
      await until(async () => (await warm.getCompletedCount()) === warmUp);
      await warmWorker.close();

      const tally = new Tally();
      await inBatches(count, (size) => queue.addBulk(jobs(size)));
      const beginMs = performance.now();
      const execute = async () => {
        tally.end();
        return null;
      };
      new Worker("counted", execute, { connection, concurrency });
      return recorded(
        tally,
        count,
        1,
        () => beginMs,
        () => queue.getCompletedCount(),
      );
    },

    async enqueued(order) {
      const queue = new Queue("counted", { connection: connectionOf(order) });
      await queue.waitUntilReady();
      return enqueueing(
        order,
        (count) => inBatches(count, (size) => queue.addBulk(jobs(size))),
        () => queue.getWaitingCount(),
      );
    },

    async result_latency(order) {
      const connection = connectionOf(order);
      const queue = new Queue("counted", { connection });
      await queue.waitUntilReady();
      const events = new QueueEvents("counted", { connection });
      await events.waitUntilReady();
      const execute = async () => ({ visited: input.visited + 1 });
      const worker = new Worker("counted", execute, { connection, concurrency: order.concurrency });
      await worker.waitUntilReady();
      return oneByOne(order, async () => {
        const added = await queue.add("noop", input);
        const { visited } = (await added.waitUntilFinished(events)) as { visited: number };
        if (visited !== 1) throw new Error("a wrong result");
      });
    },

    async timer_lateness(order) {
      const timers = new Timers(order);
      const connection = connectionOf(order);
      const queue = new Queue("fired", { connection });
      await queue.waitUntilReady();
      const execute = async ({ data }: { data: { dueMs: number } }) => timers.fired(data.dueMs);
      const worker = new Worker("fired", execute, { connection, concurrency: order.concurrency });
      await worker.waitUntilReady();
      return timers.measure((due) =>
        queue.add("fired", { dueMs: due.getTime() }, { delay: due.getTime() - Date.now() }),
      );
    },
  };
}
