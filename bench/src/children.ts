/**
 * `children`: how many parents of ten children one worker process completes per second, and whether
 * ten times as many children of one parent cost more each. This process serves families of one
 * parent, one after the other.
 */

import { connect, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { noOpJob, parentMachine } from "./definitions.js";
import { drain } from "./drain.js";
import { startInBatches } from "./enqueue.js";
import { costs, limitFigure, rate, workerCpu } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { emptyDatabase } from "./observe.js";
import { median } from "./statistics.js";
import { countUsage } from "./usage.js";

const childrenPerParent = 10;
const families = { small: 1_000, large: 10_000, smallTimes: 5, largeTimes: 3 };
const quickFamilies = { small: 100, large: 1_000, smallTimes: 3, largeTimes: 1 };

export const children: Bench = {
  defaults: { count: 2_000, quickCount: 200, concurrency: 2_000 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { observer } = request.database;
    const { small, large, smallTimes, largeTimes } = request.quick ? quickFamilies : families;
    const { limit, result } = await besideLimit(observer, request.quick, async () => {
      const fanOut = await drainParents(request);
      const [smallSeconds, largeSeconds] = await completeFamilies(request, [
        ...Array<number>(smallTimes).fill(small),
        ...Array<number>(largeTimes).fill(large),
      ]).then(
        (seconds) => [median(seconds.slice(0, smallTimes)), median(seconds.slice(smallTimes))] as const,
      );
      return { ...fanOut, smallSeconds, largeSeconds };
    });
    const { drained, usage, smallSeconds, largeSeconds } = result;
    const childCount = request.count * childrenPerParent;
    const perChild = { small: (smallSeconds * 1e6) / small, large: (largeSeconds * 1e6) / large };
    return [
      rate("children_per_s", `children ended, ${childrenPerParent} a parent`, childCount, drained.seconds),
      rate("parents_per_s", "parents completed", request.count, drained.seconds),
      limitFigure(limit),
      ...costs("", "child", usage, childCount),
      workerCpu(drained.workerCpuMs, childCount + 2 * request.count),
      { key: "small_s", label: `one parent of ${small} children`, value: smallSeconds, unit: "s" },
      { key: "large_s", label: `one parent of ${large} children`, value: largeSeconds, unit: "s" },
      { key: "small_us_per_child", label: `per child of ${small}`, value: perChild.small, unit: "µs" },
      { key: "large_us_per_child", label: `per child of ${large}`, value: perChild.large, unit: "µs" },
      { key: "growth", label: "the same, as a ratio", value: perChild.large / perChild.small, unit: "×" },
    ];
  },
};

async function drainParents({ database, count, concurrency, profiling, signal }: BenchRequest) {
  const definition = parentMachine();
  const pawl = connect(database.url);
  await startInBatches(pawl, definition, count, () => ({ input: { children: childrenPerParent } }));
  await pawl.close();
  const profilePath = profiling.pathFor("worker");
  const used = await countUsage(database);
  const drained = await profiling.server("fan-out", database, () =>
    drain(
      { database, definition: "parent", concurrency, expected: count, profilePath, signal },
      definition.name,
    ),
  );
  const usage = await used();
  profiling.add(profilePath);
  await emptyDatabase(database.observer);
  return { drained, usage };
}

/**
 * Seconds from the start of a parent to its completion, on the database's clock, one parent after
 * the other.
 */
async function completeFamilies(
  { database, concurrency, profiling }: BenchRequest,
  sizes: readonly number[],
) {
  const definition = parentMachine();
  const worker = serve([definition, noOpJob()], { url: database.url, queues: { default: concurrency } });
  const pawl = connect(database.url);
  const complete = async (size: number): Promise<number> => {
    const { runId } = await pawl.start(definition, { children: size });
    const { ended } = await pawl.result(runId, { timeout: "5m" });
    if (ended !== size) throw new Error(`${ended} of ${size} children are done`);
    const { startedAt, completedAt } = await pawl.runs.get(runId);
    return (completedAt!.getTime() - startedAt.getTime()) / 1_000;
  };
  try {
    await worker.ready;
    await complete(sizes[0]!); // to warm up
    return await profiling.server("one parent", database, async () => {
      const seconds: number[] = [];
      for (const size of sizes) seconds.push(await complete(size));
      return seconds;
    });
  } finally {
    await pawl.close();
    await worker.stop();
  }
}
