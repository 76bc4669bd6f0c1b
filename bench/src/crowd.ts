/**
 * The speed of other work while many runs wait for one partition key in the same queue. The worker
 * process is warm, and the waiting runs are put aside before the other work falls due, all at one
 * moment. The seconds from that moment to the last run compare with and without the waiting runs.
 * Used by `keys`.
 */

import { connect } from "pawl";
import type { BenchRequest } from "./bench.js";
import { input, keyedJob, noOpJob, plain } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { claimableRuns, databaseTime, emptyDatabase, lastRegistration, until } from "./observe.js";

/** Slower than runs are ever started: all are there before they fall due. */
const startedPerSecond = 10_000;
const warmUpShare = 0.1;

/** Seconds for `count` unkeyed runs, and until the crowd was out of the way of claims. */
export async function besideCrowd(request: BenchRequest, crowd: number) {
  const { database, count, concurrency, profiling, signal } = request;
  const { observer } = database;
  await emptyDatabase(observer);
  const definition = noOpJob();
  const pawl = connect(database.url);
  let asideSeconds = 0;
  try {
    await startInBatches(pawl, keyedJob(), Math.ceil(count * warmUpShare), plain);
    await startInBatches(pawl, keyedJob(), crowd, () => ({ input, partitionKey: "customer" }));
    const order = { database, definition: "job-and-keyed", concurrency, expected: count, signal } as const;
    const { seconds } = await profiling.server(crowd === 0 ? "alone" : "beside", database, () =>
      drain({ ...order, profilePath: undefined }, definition.name, async ({ deadline }) => {
        // One of the key may be let in at any time.
        await until(async () => (await claimableRuns(observer)) <= 1, deadline);
        asideSeconds = (await databaseTime(observer)) - (await lastRegistration(observer));
        const due = (await databaseTime(observer)) + 1 + count / startedPerSecond;
        const at = new Date(due * 1_000);
        await startInBatches(pawl, definition, count, () => ({ input, at }));
        if ((await databaseTime(observer)) > due) throw new Error("the other work fell due too early");
        return at.getTime() / 1_000;
      }),
    );
    return { seconds, asideSeconds };
  } finally {
    await pawl.close();
  }
}
