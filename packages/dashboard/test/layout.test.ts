import { describe, expect, it } from "vitest";
import { type Arrow, layOut } from "../src/graph/layout.js";
import { passedUntil } from "../src/graph/passed.js";

const arrow = (text: string): Arrow => {
  const [from = "", to = ""] = text.split(" ");
  return { from, to, label: "" };
};
const diamond = ["start a", "start b", "a end", "b end", "end start", "a a"].map(arrow);
const names = ["start", "a", "b", "end"];

describe("the drawing of a machine", () => {
  it("puts each step right of the steps that lead to it, and no two in one place", () => {
    const { steps, width, height } = layOut("start", names, diamond);
    const at = (name: string) => steps.find((step) => step.name === name)!;
    expect(at("start").x).toBeLessThan(at("a").x);
    expect(at("a").x).toBeLessThan(at("end").x);
    expect(at("a").y).not.toBe(at("b").y);
    for (const { x, y, width: wide } of steps) {
      expect(x + wide).toBeLessThanOrEqual(width);
      expect(y).toBeLessThan(height);
    }
  });

  it("draws every transition, also loops and those that go back", () => {
    const { arrows } = layOut("start", names, diamond);
    expect(arrows.map(({ from, to }) => `${from} ${to}`)).toEqual(
      diamond.map(({ from, to }) => `${from} ${to}`),
    );
    for (const { path } of arrows) expect(path).toMatch(/^M[\d.-]+ [\d.-]+/);
    expect(new Set(arrows.map(({ path }) => path)).size).toBe(arrows.length);
  });

  it("leaves out transitions to steps that it does not have", () => {
    expect(layOut("start", ["start"], [arrow("start gone")]).arrows).toEqual([]);
  });

  it("crosses columns with long transitions beside their steps", () => {
    const long = ["a b", "b c", "a c"].map(arrow);
    const { steps } = layOut("a", ["a", "b", "c"], long);
    expect(new Set(steps.map(({ x }) => x)).size).toBe(3);
  });
});

describe("the way to the present step", () => {
  it("has what every way takes, and nothing else", () => {
    const { steps, arrows } = passedUntil("start", "end", diamond);
    expect([...steps].toSorted()).toEqual(["end", "start"]);
    expect([...arrows]).toEqual([]);
    const chain = ["start a", "a b", "b c", "a a"].map(arrow);
    expect([...passedUntil("start", "b", chain).arrows]).toEqual(chain.slice(0, 2));
  });

  it("is the present step alone if no known way leads there", () => {
    expect([...passedUntil("start", "lost", diamond).steps]).toEqual(["lost"]);
  });
});
