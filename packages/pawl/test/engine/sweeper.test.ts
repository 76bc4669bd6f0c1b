import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Sweeper } from "../../dist/worker/sweeper.js";
import type { Recovered } from "../../dist/store/store.js";

const reapMs = 1_000;
const leaseMs = 10_000;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const nothing: Recovered = {
  reaped: 0,
  overdue: [],
  queues: [],
  marks: "{}",
  again: false,
  isWaited: false,
  hasBulk: false,
  dueMs: 8_000,
};

/** A sweeper whose looks find what `find` says, and take that long; `looks` are the times at which it began them. */
function sweeperThat(find: (at: number) => { found?: Partial<Recovered>; tookMs?: number }) {
  const looks: { at: number; repairs: boolean }[] = [];
  let isBusy = false;
  const sweeper = new Sweeper({
    store: {
      recover: async ({ repairs }) => {
        const at = performance.now();
        looks.push({ at, repairs });
        const { found, tookMs = 0 } = find(at);
        if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs));
        return { ...nothing, ...found };
      },
      sweep: async () => ({ swept: 0, last: null }),
      workBulk: async () => ({ again: false, woke: false, batch: null }),
    },
    logger: silent,
    reapMs,
    sweepMs: null,
    leaseMs,
    onOverdue: () => {},
    isBusy: () => isBusy,
    onClaimable: () => {},
  });
  return { sweeper, looks, work: () => ((isBusy = true), sweeper.hurry()) };
}

const pausesOf = (looks: readonly { at: number }[]): number[] =>
  looks.slice(1).map(({ at }, index) => at - looks[index]!.at);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a worker at rest looks at most every four intervals", async () => {
  const { looks } = sweeperThat(() => ({}));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(looks.length).toBeGreaterThan(60 / 7);
  expect(Math.min(...pausesOf(looks))).toBeGreaterThanOrEqual(4 * reapMs);
});

it("a worker at rest looks when a lease passes, at most an interval later", async () => {
  const passesAt = 30_500 + performance.now();
  const { looks } = sweeperThat((at) => ({ found: { dueMs: Math.max(0, passesAt - at) } }));
  await vi.advanceTimersByTimeAsync(35_000);
  const late = looks.find(({ at }) => at >= passesAt)!.at - passesAt;
  expect(late).toBeLessThanOrEqual(1.2 * reapMs);
});

it("whatever is found, blocked or executed makes it look every interval", async () => {
  for (const found of [{ reaped: 1 }, { queues: ["default"] }, { isWaited: true }]) {
    const { sweeper, looks } = sweeperThat(() => ({ found }));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(Math.max(...pausesOf(looks))).toBeLessThanOrEqual(1.2 * reapMs + 1);
    await sweeper.stop();
  }
  const { looks, work } = sweeperThat(() => ({}));
  await vi.advanceTimersByTimeAsync(20_000);
  work();
  const workedAt = performance.now();
  await vi.advanceTimersByTimeAsync(20_000);
  const after = looks.filter(({ at }) => at >= workedAt);
  expect(after[0]!.at - workedAt).toBeLessThanOrEqual(1.2 * reapMs + 1);
  expect(Math.max(...pausesOf(after))).toBeLessThanOrEqual(1.2 * reapMs + 1);
});

it("repairs that walk far are followed by a rest ten times as long, while dead workers are looked for as ever", async () => {
  const { looks, work } = sweeperThat(() => ({ tookMs: 800 }));
  work();
  await vi.advanceTimersByTimeAsync(60_000);
  const repairs = looks.filter((look) => look.repairs);
  expect(repairs.length).toBeGreaterThan(3);
  expect(Math.min(...pausesOf(repairs))).toBeGreaterThanOrEqual(8_000);
  expect(Math.max(...pausesOf(looks))).toBeLessThanOrEqual(800 + 1.2 * reapMs + 1);
});

it("a look that asks for another gets it at once", async () => {
  let left = 3;
  const { looks } = sweeperThat(() => ({ found: { reaped: 1, again: --left > 0 } }));
  await vi.advanceTimersByTimeAsync(1.2 * reapMs + 1);
  expect(looks).toHaveLength(3);
});
