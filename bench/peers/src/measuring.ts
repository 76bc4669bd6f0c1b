/**
 * How the measurements are taken, the same for every contestant: what is counted, when the clock
 * starts and stops, how the timers are spread, when the signals are sent.
 */

import { performance } from "node:perf_hooks";
import type { Order, Rate, Times } from "./program.ts";

export const stepsPerWorkflow = 10;

/** What starts every job and workflow: about as much as a real one is given. */
export const input = { orderId: 4711, email: "customer@example.com", visited: 0 };

const batch = 1_000;
const batchesInFlight = 2;
const lookMs = 2;

/** Counts what has been through the hands of the contestant's code. */
export class Tally {
  count = 0;
  firstMs = Number.NaN;

  /** The code has begun. */
  begin(): void {
    if (Number.isNaN(this.firstMs)) this.firstMs = performance.now();
  }

  /** The code has ended; what it led to may not be recorded yet. */
  end(): void {
    this.count++;
  }
}

export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pause(lookMs);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * The rate since that time: waits until the code has run as often as expected, then until the
 * contestant's own records say that all is done, and takes the time of that. More than expected is
 * an error.
 */
export async function recorded(
  tally: Tally,
  expected: number,
  perUnit: number,
  sinceMs: () => number,
  recordedCount: () => Promise<number>,
): Promise<Rate> {
  await until(() => tally.count >= expected);
  let found = 0;
  await until(async () => (found = await recordedCount()) >= expected);
  const untilMs = performance.now();
  if (found !== expected || tally.count !== expected)
    throw new Error(`${expected} were started, ${tally.count} executed and ${found} recorded`);
  return { kind: "rate", done: expected * perUnit, seconds: (untilMs - sinceMs()) / 1_000 };
}

/** Calls it for 0 … count - 1, so many at a time. */
export async function inParallel(
  count: number,
  atATime: number,
  call: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const loop = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: Math.min(count, atATime) }, loop));
}

/** Calls it with the sizes of batches, 1,000 each and two in flight, until so many are through. */
export async function inBatches(count: number, enqueue: (size: number) => Promise<unknown>): Promise<void> {
  const batches = Math.ceil(count / batch);
  await inParallel(batches, batchesInFlight, (index) => enqueue(Math.min(batch, count - index * batch)));
}

/**
 * The rate of enqueueing `order.count` jobs; `found` then counts those that are there, warm-up
 * included.
 */
export async function enqueueing(
  order: Order,
  enqueue: (count: number) => Promise<unknown>,
  found: () => Promise<number>,
): Promise<Rate> {
  await enqueue(order.warmUp);
  const beginMs = performance.now();
  await enqueue(order.count);
  const seconds = (performance.now() - beginMs) / 1_000;
  const there = await found();
  if (there !== order.count + order.warmUp)
    throw new Error(`${order.count + order.warmUp} were enqueued, and ${there} are there`);
  return { kind: "rate", done: order.count, seconds };
}

/** How long one takes, one after the other. */
export async function oneByOne(order: Order, once: (round: number) => Promise<unknown>): Promise<Times> {
  const timesMs: number[] = [];
  for (let round = 0; round < order.warmUp + order.count; round++) {
    const beginMs = performance.now();
    await once(round);
    if (round >= order.warmUp) timesMs.push(performance.now() - beginMs);
  }
  return { kind: "times", timesMs };
}

/** As far as the clocks of two processes and a timer's resolution may differ. */
const earlyMs = 2;

const restMs = (timers: number): number => 500 + timers * 10;

/** Timers at random times within the spread, which begins late enough that all are set before. */
export class Timers {
  private readonly latenessMs: number[] = [];
  private readonly order: Order;

  constructor(order: Order) {
    this.order = order;
  }

  /** The contestant's code is there: it was due at this time, in milliseconds since 1970. */
  fired(dueMs: number): void {
    this.latenessMs.push(performance.timeOrigin + performance.now() - dueMs);
  }

  /** `set` sets one timer durably for that time. */
  async measure(set: (due: Date) => Promise<unknown>): Promise<Times> {
    await this.round(this.order.warmUp, 300, set);
    await pause(500); // idle
    const timesMs = await this.round(this.order.count, this.order.spreadMs, set);
    if (Math.min(...timesMs) < -earlyMs) throw new Error("a timer fired early");
    return { kind: "times", timesMs };
  }

  private async round(
    count: number,
    spreadMs: number,
    set: (due: Date) => Promise<unknown>,
  ): Promise<number[]> {
    this.latenessMs.length = 0;
    const beginMs = Date.now() + restMs(count);
    const dues = Array.from(
      { length: count },
      () => new Date(beginMs + Math.floor(Math.random() * spreadMs)),
    );
    await Promise.all(dues.map(set));
    if (Date.now() > beginMs) throw new Error("the timers could not be set in time");
    await until(() => this.latenessMs.length >= count);
    return [...this.latenessMs];
  }
}

/** Signals to workflows that have been waiting for a moment, one after the other. */
export class WakeUps {
  private reached: (() => void) | undefined;
  private woken: ((ms: number) => void) | undefined;

  /** The workflow's code is about to wait. */
  waiting(): void {
    this.reached?.();
  }

  /** The workflow's code goes on after the wait. */
  wokenUp(): void {
    this.woken?.(performance.now());
  }

  /** `start` starts a workflow that waits and gives what `send` needs to wake it. */
  async measure<Id>(
    order: Order,
    start: (round: number) => Promise<Id>,
    send: (id: Id) => Promise<unknown>,
  ): Promise<Times> {
    const timesMs: number[] = [];
    for (let round = 0; round < order.warmUp + order.count; round++) {
      const reached = new Promise<void>((resolve) => (this.reached = resolve));
      const woken = new Promise<number>((resolve) => (this.woken = resolve));
      const id = await start(round);
      await reached;
      await pause(50 + Math.random() * 50); // until it is suspended, and not in step with anybody's polling
      const beginMs = performance.now();
      const [wokenMs] = await Promise.all([woken, send(id)]);
      if (round >= order.warmUp) timesMs.push(wokenMs - beginMs);
    }
    return { kind: "times", timesMs };
  }
}
