/**
 * pg-boss. Batches: 1,000 jobs a fetch, and fetching goes on without a pause while the batches are
 * full (`burstWhenBatchFull`), by two workers. Singly: one job a fetch, as it comes, by 400 workers
 * (more was better, since each waits 0.5 s when it has found nothing) that go on while the queue is
 * known to be long (`burstWhenReadyExceeds`, with the statistics behind it refreshed every second).
 * New jobs are announced by NOTIFY (`useListenNotify` and the queue's `notify`), as its
 * documentation advises for low latency; delayed ones are found by polling, every 0.5 s, the
 * shortest it allows.
 */

import { performance } from "node:perf_hooks";
import { PgBoss } from "pg-boss";
import { enqueueing, inBatches, input, oneByOne, recorded, Tally, Timers, until } from "./measuring.ts";
import { contend, type Order, type Rate } from "./program.ts";
import { rowCounter } from "./rows.ts";

const pollingIntervalSeconds = 0.5;
const connections = 25;
const workers = 400;
const ways = {
  "batches of 1,000": { batchSize: 1_000, burstWhenBatchFull: true, localConcurrency: 2 },
  singly: { batchSize: 1, burstWhenReadyExceeds: 1, localConcurrency: workers },
};
const eager = { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1, queueCacheIntervalSeconds: 1 };

async function open(connectionString: string, options = {}): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString, schedule: false, max: connections, ...options });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

const jobs = (size: number) => Array.from({ length: size }, () => ({ data: input }));

/** Drains jobs that exist before the workers start. */
async function drain({ databaseUrl, count, warmUp }: Order, way: keyof typeof ways): Promise<Rate> {
  const boss = await open(databaseUrl, way === "singly" ? eager : {});
  await boss.createQueue("warm-up");
  await boss.createQueue("counted");
  const tally = new Tally();
  const warm = new Tally();
  const options = { ...ways[way], pollingIntervalSeconds };
  await boss.insert("warm-up", jobs(warmUp));
  await boss.work("warm-up", options, async (fetched) => void fetched.forEach(() => warm.end()));
  await until(() => warm.count >= warmUp);
  await boss.offWork("warm-up");

  await inBatches(count, (size) => boss.insert("counted", jobs(size)));
  const found = await rowCounter(
    databaseUrl,
    "select count(*) from pgboss.job where name = 'counted' and state = 'completed'",
  );
  const beginMs = performance.now();
  await boss.work("counted", options, async (fetched) => void fetched.forEach(() => tally.end()));
  return recorded(tally, count, 1, () => beginMs, found);
}

contend({
  jobs_drained: (order) => drain(order, order.variant as keyof typeof ways),

  batches_drained: (order) => drain(order, "batches of 1,000"),

  async enqueued(order) {
    const boss = await open(order.databaseUrl);
    await boss.createQueue("counted");
    return enqueueing(
      order,
      (count) => inBatches(count, (size) => boss.insert("counted", jobs(size))),
      await rowCounter(order.databaseUrl, "select count(*) from pgboss.job where name = 'counted'"),
    );
  },

  /** Its API tells nobody that a job is done: until it is picked up. */
  async result_latency(order) {
    const boss = await open(order.databaseUrl, { useListenNotify: true });
    await boss.createQueue("counted", { notify: true });
    let pickedUp = (): void => {};
    await boss.work("counted", { pollingIntervalSeconds }, async () => pickedUp());
    return oneByOne(order, async () => {
      const there = new Promise<void>((resolve) => (pickedUp = resolve));
      await boss.send("counted", input);
      await there;
    });
  },

  async timer_lateness(order) {
    const timers = new Timers(order);
    const boss = await open(order.databaseUrl);
    await boss.createQueue("fired");
    const options = { pollingIntervalSeconds, batchSize: order.concurrency };
    await boss.work<{ dueMs: number }>("fired", options, async (fetched) => {
      for (const { data } of fetched) timers.fired(data.dueMs);
    });
    return timers.measure((due) => boss.sendAfter("fired", { dueMs: due.getTime() }, null, due));
  },
});
