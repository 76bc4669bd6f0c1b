/**
 * The frame of every contestant's program: takes one order from the orchestrator, does the
 * measurement it names, and answers with figures or the reason of its failure. The orchestrator
 * then ends the process, so nobody has to tidy up.
 */

import type { Answer, Measurement, Order } from "../../src/peers/protocol.ts";

export type { Order } from "../../src/peers/protocol.ts";

export interface Rate {
  readonly kind: "rate";
  readonly done: number;
  readonly seconds: number;
}

export interface Times {
  readonly kind: "times";
  readonly timesMs: readonly number[];
}

export type Measures = Partial<Record<Measurement, (order: Order) => Promise<Rate | Times>>>;

export function contend(measures: Measures): void {
  process.once("message", (order: Order) => {
    const measure = measures[order.measurement];
    const measured =
      measure === undefined
        ? Promise.reject(new Error(`no program for ${order.measurement}`))
        : measure(order);
    measured.then(answer, (error: unknown) => answer({ kind: "failed", message: describe(error) }));
  });
  process.on("disconnect", () => process.exit());
}

function answer(message: Answer): void {
  process.send!(message);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
