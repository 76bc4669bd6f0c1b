import { describe, expect, it } from "vitest";
import { preview, tokenize } from "../src/format/json.js";
import { readMetrics, total } from "../src/format/metrics.js";
import { duration, relativeTime } from "../src/format/time.js";
import { readPair, toApiQuery, toBulkFilter, toFlags } from "../src/pages/filters.js";

describe("times", () => {
  it.each([
    [0, "just now"],
    [-5_000, "5 s ago"],
    [-90_000, "2 min ago"],
    [7_200_000, "in 2 h"],
    [-86_400_000 * 3, "3 days ago"],
  ])("%d ms from now is %s", (away, text) => {
    expect(relativeTime(1e12 + away, 1e12)).toBe(text);
  });

  it.each([
    [0.2, "<1 ms"],
    [212, "212 ms"],
    [3_400, "3.4 s"],
    [1_000, "1 s"],
    [125_000, "2 min 5 s"],
    [3_600_000, "1 h"],
    [90_000_000, "1 d 1 h"],
  ])("%d ms take %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});

describe("JSON", () => {
  it("is cut into tokens without losing a character", () => {
    const text = JSON.stringify({ "a b": ['x"\\', 1.5e3, true, null], c: "<b>: 1" }, null, 2);
    const tokens = tokenize(text);
    expect(tokens.map((token) => token.text).join("")).toBe(text);
    expect(tokens.filter(({ kind }) => kind === "key").map((token) => token.text)).toEqual(['"a b"', '"c"']);
    expect(tokens.filter(({ kind }) => kind === "number").map((token) => token.text)).toEqual(["1500"]);
  });

  it("is short in a table", () => {
    expect(preview({ long: "x".repeat(100) }, 20)).toBe('{"long":"xxxxxxxxxx…');
    expect(preview(undefined)).toBe("");
  });
});

describe("metrics", () => {
  it("are read with their labels", () => {
    const metrics = readMetrics(
      '# HELP pawl_queue_depth …\npawl_queue_depth{queue="a \\"b\\"",x="\\\\"} 3\npawl_queue_depth{queue="c"} 4\nnode_x 5\n',
    );
    expect(metrics.get("pawl_queue_depth")?.[0]).toEqual({ labels: { queue: 'a "b"', x: "\\" }, value: 3 });
    expect([total(metrics, "pawl_queue_depth"), total(metrics, "pawl_workers")]).toEqual([7, 0]);
  });
});

describe("filters in an address", () => {
  it("become the query of the API, and nothing else does", () => {
    const address = new URLSearchParams("status=failed&input.user.id=42&name=&theme=dark&started=1h");
    expect(toApiQuery(address, Date.parse("2026-01-31T12:00:30Z"))).toEqual({
      status: "failed",
      "input.user.id": "42",
      since: "2026-01-31T11:00:00.000Z",
    });
  });

  it("become the same filters of a bulk operation, as JSON", () => {
    const address = new URLSearchParams(
      "status=failed&version=2&input.user.id=42&input.user.name=Ada&tag.customer=7&cursor=x&paused=true",
    );
    expect(toBulkFilter(address, 0)).toEqual({
      status: "failed",
      version: 2,
      input: { user: { id: 42, name: "Ada" } },
      tags: { customer: "7" },
      paused: true,
    });
  });

  it("are options of the command for a bulk operation", () => {
    const address = new URLSearchParams(
      "status=failed&version=2&parentId=7&correlationKey=order+1&paused=true&tag.a=b&tag.c=d=e&input.id=42",
    );
    expect((toFlags(toBulkFilter(address, 0)) ?? []).join(" ")).toBe(
      "--status failed --version 2 --parent 7 --correlation-key order 1 --paused " +
        '--tag a=b --tag c=d=e --input {"id":42}',
    );
    expect(toFlags(toBulkFilter(new URLSearchParams("status=running&paused=false"), 0))).toBeNull();
  });

  it("are typed as path=value", () => {
    expect(readPair("input", " user.id = 42 ")).toEqual(["input.user.id", "42"]);
    expect(readPair("input", "input.a=b=c")).toEqual(["input.a", "b=c"]);
    expect(readPair("input", "nothing")).toBeNull();
  });
});
