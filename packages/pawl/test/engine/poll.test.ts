import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { decideWait, type Polled, PollLoop } from "../../dist/timing/poll.js";

const pace = { shortestMs: 10, longestMs: 100 };
const empty: Polled = { kind: "drained", found: false, dueAtMs: null };

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A loop whose polls answer what `poll` says, and when they were made. */
function loopThat(poll: () => Polled | Promise<Polled>) {
  const atMs: number[] = [];
  const beganMs = performance.now();
  const loop = new PollLoop(pace, async () => {
    atMs.push(Math.round(performance.now() - beganMs));
    return poll();
  });
  return { loop, atMs };
}

it("the interval grows while polls find nothing and is the shortest after one that found something", () => {
  let state = { intervalMs: 10, failures: 0 };
  const waits: (number | null)[] = [];
  for (const found of [false, false, false, true, false, false]) {
    const decided = decideWait({ kind: "drained", found, dueAtMs: null }, state, pace, 0.5);
    waits.push(decided.wait.longestMs);
    ({ state } = decided);
  }
  expect(waits).toEqual([10, 15, 22.5, 10, 10, 15]);
});

it("the delay after failures in a row doubles up to a second and begins anew after a success", () => {
  let state = { intervalMs: 10, failures: 0 };
  const delays: (number | null)[] = [];
  for (let count = 0; count < 7; count++) {
    const decided = decideWait({ kind: "failed" }, state, pace, 0.5);
    delays.push(decided.wait.longestMs);
    ({ state } = decided);
  }
  expect(delays).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
  expect(decideWait(empty, state, pace, 0.5).state.failures).toBe(0);
});

it("the jitter spreads an interval by 15 % either way", () => {
  const state = { intervalMs: 100, failures: 0 };
  expect(decideWait(empty, state, pace, 0).wait.longestMs).toBe(85);
  expect(decideWait(empty, state, pace, 1).wait.longestMs).toBeCloseTo(115);
});

it("a hint ends a wait, and one that arrives during a poll makes the next follow at once", async () => {
  let tookMs = 0;
  const { loop, atMs } = loopThat(async () => {
    if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs));
    return empty;
  });
  loop.start();
  await vi.advanceTimersByTimeAsync(4);
  tookMs = 5;
  loop.hint();
  await vi.advanceTimersByTimeAsync(2);
  expect(atMs).toEqual([0, 4]);
  loop.hint();
  await vi.advanceTimersByTimeAsync(4);
  expect(atMs).toEqual([0, 4, 9]);
  const stopped = loop.stop();
  await vi.advanceTimersByTimeAsync(10);
  await stopped;
});

it("a due time ends a wait for work, but not a pause", async () => {
  let polled: Polled = { kind: "drained", found: false, dueAtMs: performance.now() + 3 };
  const { loop, atMs } = loopThat(() => polled);
  loop.start();
  polled = { kind: "pause", ms: 50 };
  await vi.advanceTimersByTimeAsync(3);
  expect(atMs).toEqual([0, 3]);
  loop.expectAt(performance.now() + 5);
  await vi.advanceTimersByTimeAsync(49);
  expect(atMs).toEqual([0, 3]);
  await vi.advanceTimersByTimeAsync(1);
  expect(atMs).toEqual([0, 3, 53]);
  await loop.stop();
});

it("a hint that arrives while a poll decides to pause ends the pause", async () => {
  const { loop, atMs } = loopThat(() => {
    if (atMs.length === 1) queueMicrotask(() => loop.hint());
    return { kind: "pause", ms: 50 };
  });
  loop.start();
  await vi.advanceTimersByTimeAsync(10);
  expect(atMs).toEqual([0, 0]);
  await loop.stop();
});

it("the pause after a failure forgets the hints that arrived during its poll, and ends with a later one", async () => {
  const { loop, atMs } = loopThat(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return { kind: "failed" };
  });
  loop.start();
  await vi.advanceTimersByTimeAsync(2);
  loop.hint();
  await vi.advanceTimersByTimeAsync(10);
  expect(atMs).toEqual([0]);
  loop.hint();
  await vi.advanceTimersByTimeAsync(1);
  expect(atMs).toEqual([0, 12]);
  const stopped = loop.stop();
  await vi.advanceTimersByTimeAsync(10);
  await stopped;
});

it("a loop that is started while it stops goes on, and one that has stopped polls no more", async () => {
  const { loop, atMs } = loopThat(() => empty);
  loop.start();
  await vi.advanceTimersByTimeAsync(1);
  const stopped = loop.stop();
  loop.start();
  await vi.advanceTimersByTimeAsync(30);
  expect(atMs.length).toBeGreaterThan(2);
  await loop.stop();
  await stopped;
  const polls = atMs.length;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(atMs.length).toBe(polls);
  expect(loop.isRunning).toBe(false);
});

it("a loop without an end to its wait keeps no timer", async () => {
  const { loop, atMs } = loopThat(() => ({ kind: "pause", ms: Number.POSITIVE_INFINITY }));
  loop.start();
  await vi.advanceTimersByTimeAsync(10);
  expect(vi.getTimerCount()).toBe(0);
  loop.hint();
  await vi.advanceTimersByTimeAsync(1);
  expect(atMs).toEqual([0, 10]);
  await loop.stop();
});
