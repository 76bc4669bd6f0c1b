import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ClaimCursor } from "../../dist/worker/claim-cursor.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const served = (count: number) => ({
  names: Array.from({ length: count }, (_, n) => `job-${n}`),
  versions: Array.from({ length: count }, () => 1),
});
const found = { floor: null, runs: [], busy: null };

it("a look probes all definitions, if they are few", () => {
  const water = new ClaimCursor(served(50));
  expect(water.begin().names).toHaveLength(50);
  water.accept({ ...found, busy: [1] });
  expect(water.begin().names).toHaveLength(50);
  expect(water.restMs()).toBeNull();
});

it("of many definitions, those without due runs are probed again after a rest", () => {
  const water = new ClaimCursor(served(1_000));
  expect(water.begin().names).toHaveLength(1_000);
  water.accept({ ...found, busy: [3, 1_000] });
  expect(water.begin()).toMatchObject({ names: ["job-2", "job-999"], versions: [1, 1], bounded: false });
  // What a look at some of them has found says nothing about the others.
  water.accept({ ...found, busy: [] });
  expect(water.begin().names).toHaveLength(2);
  const restMs = water.restMs()!;
  expect(restMs).toBeGreaterThan(0);
  expect(restMs).toBeLessThanOrEqual(100);
  vi.advanceTimersByTime(restMs);
  expect(water.begin().names).toHaveLength(1_000);
  expect(water.restMs()).toBeNull();
});

it("of many definitions without due runs, every look probes all", () => {
  const water = new ClaimCursor(served(1_000));
  water.begin();
  water.accept({ ...found, busy: [] });
  expect(water.begin().names).toHaveLength(1_000);
});

it("a mark is kept for a second, lowered by what becomes claimable before it, and dropped when anything may have", () => {
  const water = new ClaimCursor(served(1));
  water.begin();
  water.accept({ ...found, floor: [0, 100] });
  expect(water.begin().floor).toEqual([0, 100]);
  water.lower({ queue: "default", priority: 0, microseconds: 200 });
  expect(water.begin().floor).toEqual([0, 100]);
  water.lower({ queue: "default", priority: 0, microseconds: 50 });
  expect(water.begin().floor).toEqual([0, 50]);
  water.lower({ queue: "default", priority: -1, microseconds: 70 });
  expect(water.begin().floor).toEqual([-1, 70]);
  vi.advanceTimersByTime(1_000);
  expect(water.begin().floor).toBeNull();
  water.accept({ ...found, floor: [0, 100] });
  water.rewind();
  expect(water.begin().floor).toBeNull();
});
