import { describe, expect, it } from "vitest";
import { foldIdle } from "../src/run/fold.js";

const busy = (fromMs: number, toMs: number) => ({ fromMs, toMs, isIdle: false });
const idle = (fromMs: number, toMs: number) => ({ fromMs, toMs, isIdle: true });
const dayMs = 86_400_000;

describe("the scale of a waterfall", () => {
  it("is linear if there is no long idle time", () => {
    const scale = foldIdle([busy(0, 500), busy(500, 1_000)], 0, 1_000);
    expect([0, 250, 500, 1_000].map(scale.at)).toEqual([0, 0.25, 0.5, 1]);
    expect(scale.folds).toEqual([]);
  });

  it("folds days of sleep into a narrow band, so that the work keeps most of the width", () => {
    const spans = [busy(0, 100), idle(100, 3 * dayMs), busy(3 * dayMs, 3 * dayMs + 100)];
    const { at, folds } = foldIdle(spans, 0, 3 * dayMs + 100);
    expect(folds).toMatchObject([{ fromMs: 100, toMs: 3 * dayMs }]);
    expect(at(100)).toBeGreaterThan(0.4);
    expect(at(3 * dayMs) - at(100)).toBeLessThan(0.2);
    expect(at(3 * dayMs + 100)).toBe(1);
  });

  it("does not fold a wait while another step works", () => {
    expect(foldIdle([idle(0, 1_000), busy(0, 1_000)], 0, 1_000).folds).toEqual([]);
  });

  it("leaves the work most of the width, however many waits there are", () => {
    const spans = Array.from({ length: 50 }, (_, n) => [
      busy(n * dayMs, n * dayMs + 10),
      idle(n * dayMs + 10, (n + 1) * dayMs),
    ]).flat();
    const { folds } = foldIdle(spans, 0, 50 * dayMs);
    const bands = folds.reduce((sum, { left, right }) => sum + right - left, 0);
    expect(folds).toHaveLength(50);
    expect(bands).toBeLessThan(0.5);
  });

  it("never goes backward, and stays within the width", () => {
    const spans = [busy(5, 9), idle(9, 5_000), busy(4_000, 4_001), busy(7_000, 7_400)];
    const { at } = foldIdle(spans, 0, 7_400);
    const places = Array.from({ length: 80 }, (_, n) => at(n * 100 - 200));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect([Math.min(...places), Math.max(...places)]).toEqual([0, 1]);
  });

  it("takes a run without any time", () => {
    expect(foldIdle([], 5, 5).at(5)).toBe(0);
    expect(foldIdle([busy(5, 5)], 5, 5).at(6)).toBe(1);
  });
});
