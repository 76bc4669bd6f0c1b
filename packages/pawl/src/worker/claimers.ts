/**
 * The claimers of a worker. Each queue has one for the definitions that run one at a time, and one
 * for every batch job, which has slots of its own: one of its calls takes many runs. Owned by the
 * worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import { type BatchDefinition, isBatchJob } from "../run/execute-batch.js";
import type { Batches } from "./batches.js";
import type { Claimer } from "./claimer.js";

/** Makes the claimers of a queue. */
export interface ClaimersMaker {
  single(queue: string, concurrency: number, definitions: readonly AnyDefinition[]): Claimer;
  batched(queue: string, concurrency: number, definition: BatchDefinition): BatchClaimer;
}

/** The claimer of a batch job, and the batches that its runs join. */
export interface BatchClaimer {
  readonly claimer: Claimer;
  readonly batches: Batches;
}

export class Claimers implements Iterable<Claimer> {
  /** Of the definitions that run one at a time, by queue. */
  readonly single = new Map<string, Claimer>();
  /** By queue, then by `name@version`. */
  readonly #batched = new Map<string, Map<string, BatchClaimer>>();

  constructor(
    queues: ReadonlyMap<string, number>,
    definitions: readonly AnyDefinition[],
    maker: ClaimersMaker,
  ) {
    const jobs = definitions.filter(isBatchJob);
    const others = definitions.filter((definition) => !isBatchJob(definition));
    for (const [queue, concurrency] of queues) {
      if (others.length > 0) this.single.set(queue, maker.single(queue, concurrency, others));
      const batched = jobs.map((job) => [keyOf(job), maker.batched(queue, concurrency, job)] as const);
      this.#batched.set(queue, new Map(batched));
    }
  }

  *[Symbol.iterator](): Iterator<Claimer> {
    yield* this.single.values();
    for (const batched of this.#batched.values()) for (const { claimer } of batched.values()) yield claimer;
  }

  /** The claimers of a queue. */
  *of(queue: string): Generator<Claimer> {
    const single = this.single.get(queue);
    if (single !== undefined) yield single;
    for (const { claimer } of this.#batched.get(queue)?.values() ?? []) yield claimer;
  }

  /** The claimer that serves this definition in a queue. */
  find(queue: string, definition: AnyDefinition): Claimer | undefined {
    if (!isBatchJob(definition)) return this.single.get(queue);
    return this.#batched.get(queue)?.get(keyOf(definition))?.claimer;
  }

  /** The batches that runs of this job join. */
  batchesOf(queue: string, definition: BatchDefinition): Batches {
    return this.#batched.get(queue)!.get(keyOf(definition))!.batches;
  }

  *batches(): Generator<Batches> {
    for (const batched of this.#batched.values()) for (const { batches } of batched.values()) yield batches;
  }
}

function keyOf({ name, version }: AnyDefinition): string {
  return `${name}@${version}`;
}
