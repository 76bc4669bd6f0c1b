/**
 * `keys`: how fast one worker process drains runs of one partition key, of which only one may
 * execute at a time, and of many keys. Then how much many waiting runs of one key slow down other
 * work in the same queue.
 */

import { connect } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { besideCrowd } from "./crowd.js";
import { input, noOpJob } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { commitFigure, costs, limitFigure, rate, share, workerCpu } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { emptyDatabase } from "./observe.js";
import { countUsage } from "./usage.js";

const runsPerKey = 20;
/** Many keys at once are drained faster than one: a part of the count is enough. */
const manyKeysShare = 0.4;

export const keys: Bench = {
  defaults: { count: 50_000, quickCount: 2_000, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { count } = request;
    const { limit, result } = await besideLimit(observer, request.quick, async () => {
      const one = await drainKeys(request, "one-key", count, 1);
      const many = Math.ceil(count * manyKeysShare);
      const several = await drainKeys(request, "many-keys", many, Math.ceil(many / runsPerKey));
      return { one, several, others: await measureOthers(request), many };
    });
    const { one, several, others, many } = result;
    return [
      rate("one_key_per_s", "drained, all of one key", count, one.drained.seconds),
      // One run of a key begins when the end of the last one is on disk: a commit each, one after
      // the other.
      share(
        "one_key_of_commits_percent",
        "of what one-row commits allow",
        limit.commitMs * count,
        one.drained.seconds * 1_000,
      ),
      commitFigure(limit),
      ...costs("one_key", "run", one.usage, count),
      workerCpu(one.drained.workerCpuMs, count),
      rate("many_keys_per_s", `drained, ${runsPerKey} runs a key`, many, several.drained.seconds),
      ...costs("many_keys", "run", several.usage, many),
      rate("others_alone_per_s", "other work alone", 2 * count, others.aloneSeconds),
      rate("others_beside_per_s", "other work beside a crowd of one key", 2 * count, others.besideSeconds),
      share(
        "others_kept_percent",
        "other work keeps of its speed",
        others.aloneSeconds,
        others.besideSeconds,
      ),
      { key: "aside_s", label: "until the crowd is put aside", value: others.asideSeconds, unit: "s" },
      limitFigure(limit),
    ];
  },
};

/**
 * Alone, beside a crowd, beside a crowd, alone: a machine that becomes slower or faster meanwhile
 * does so to both.
 */
async function measureOthers(request: BenchRequest) {
  const first = await besideCrowd(request, 0);
  const crowded = [
    await besideCrowd(request, request.count),
    await besideCrowd(request, request.count),
  ] as const;
  const last = await besideCrowd(request, 0);
  return {
    aloneSeconds: first.seconds + last.seconds,
    besideSeconds: crowded[0].seconds + crowded[1].seconds,
    asideSeconds: Math.max(crowded[0].asideSeconds, crowded[1].asideSeconds),
  };
}

async function drainKeys(
  { database, concurrency, profiling, signal }: BenchRequest,
  part: string,
  expected: number,
  keyCount: number,
) {
  await emptyDatabase(database.observer);
  const definition = noOpJob();
  const pawl = connect(database.url);
  await startInBatches(pawl, definition, expected, (index) => ({
    input,
    partitionKey: `customer-${index % keyCount}`,
  }));
  await pawl.close();

  const profilePath = profiling.pathFor(part);
  const used = await countUsage(database);
  const drained = await profiling.server(part, database, () =>
    drain({ database, definition: "job", concurrency, expected, profilePath, signal }, definition.name),
  );
  const usage = await used();
  profiling.add(profilePath);
  return { drained, usage };
}
