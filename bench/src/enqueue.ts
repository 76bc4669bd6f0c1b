/**
 * Starts many runs as fast as one client process can: by `startMany` in batches, a few in flight,
 * or by single `start` calls from many concurrent callers. Returns the time it took.
 */

import { performance } from "node:perf_hooks";
import type { AnyDefinition, InputOf, Pawl, StartItem } from "pawl";
import { input, type noOpJob } from "./definitions.js";

const batch = 1_000;
const batchesInFlight = 2;
const callers = 500;

/** Seconds until `startMany` has committed `count` runs; `item` returns the n-th item. */
export function startInBatches<Definition extends AnyDefinition>(
  pawl: Pawl,
  definition: Definition,
  count: number,
  item: (index: number) => StartItem<InputOf<Definition>>,
): Promise<number> {
  let begun = 0;
  return timed(batchesInFlight, async () => {
    const size = Math.min(batch, count - begun);
    if (size === 0) return false;
    const first = begun;
    begun += size;
    await pawl.startMany(
      definition,
      Array.from({ length: size }, (_, index) => item(first + index)),
    );
    return true;
  });
}

/** Seconds until `count` runs were committed by single starts. */
export function startOneByOne(
  pawl: Pawl,
  definition: ReturnType<typeof noOpJob>,
  count: number,
): Promise<number> {
  let left = count;
  return timed(callers, async () => {
    if (left === 0) return false;
    left--;
    await pawl.start(definition, input);
    return true;
  });
}

/** Calls `next` from so many concurrent loops until it says false. */
async function timed(loops: number, next: () => Promise<boolean>): Promise<number> {
  const beginMs = performance.now();
  const loop = async (): Promise<void> => {
    while (await next());
  };
  await Promise.all(Array.from({ length: loops }, loop));
  return (performance.now() - beginMs) / 1_000;
}
