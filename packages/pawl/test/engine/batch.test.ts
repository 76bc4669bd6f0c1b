import { describe, expect, it } from "vitest";
import { Batcher } from "../../dist/timing/batch.js";

class Busy extends Error {}
class Outage extends Error {}

interface Item {
  readonly key: string;
  readonly value: string;
}

type Answer = { readonly kind: "done"; readonly value: string } | { readonly kind: "dropped" };

const errorKinds = {
  isBusy: (error: unknown) => error instanceof Busy,
  isOutage: (error: unknown) => error instanceof Outage,
  sizeOf: () => 1,
};
const turn = () => new Promise((resolve) => setImmediate(resolve));
const turns = async (count: number) => {
  for (let index = 0; index < count; index++) await turn();
};

/** A batcher whose calls wait until they are answered by hand. */
function guardedBatcher(lanes = 1) {
  const calls: { values: string[]; isAlone: boolean; answer(busy?: string[]): void; fail(e: Error): void }[] =
    [];
  const failures: unknown[] = [];
  const late: string[] = [];
  const batcher = new Batcher<Item, Answer>({
    ...errorKinds,
    lanes,
    send: (items, { isAlone }) =>
      new Promise((resolve, reject) => {
        calls.push({
          values: items.map(({ value }) => value),
          isAlone,
          answer: (busy = []) =>
            resolve(
              items.map(({ value }) =>
                busy.includes(value) ? ({ kind: "busy" } as const) : ({ kind: "done", value } as const),
              ),
            ),
          fail: reject,
        });
      }),
    guarded: {
      keyOf: ({ key }) => key,
      compare: (one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0),
      dropped: { kind: "dropped" },
      onFailure: (error) => failures.push(error),
      onLate: ({ value }) => late.push(value),
    },
  });
  const add = (key: string, value = key) => batcher.add({ key, value });
  const next = async (count: number) => {
    while (calls.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
    return calls[count - 1]!;
  };
  return { batcher, add, calls, failures, late, next };
}

describe("the batcher", () => {
  it("sends the items of one turn together, and those that arrive meanwhile in the next call", async () => {
    const sent: string[][] = [];
    const batcher = new Batcher<string, string>({
      ...errorKinds,
      send: async (items) => {
        sent.push([...items]);
        await turn();
        return items.map((item) => item.toUpperCase());
      },
    });
    const first = [batcher.add("a"), batcher.add("b")];
    await turn();
    const second = [batcher.add("c"), batcher.add("d")];
    expect(await Promise.all([...first, ...second])).toEqual(["A", "B", "C", "D"]);
    expect(sent).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
  });

  it("bounds a call by count and by bytes, and keeps the order", async () => {
    const sent: number[][] = [];
    const batcher = new Batcher<number, number>({
      ...errorKinds,
      sizeOf: (item) => (item === 1 ? 7 * 1024 * 1024 : 2 * 1024 * 1024),
      send: async (items) => {
        sent.push([...items]);
        return items;
      },
    });
    await Promise.all([0, 1, 2, 3].map((item) => batcher.add(item)));
    expect(sent).toEqual([[0], [1], [2, 3]]);
    const counted = new Batcher<number, number>({ ...errorKinds, send: async (items) => items });
    const many = Array.from({ length: 1_201 }, (_, index) => index);
    expect(await Promise.all(many.map((item) => counted.add(item)))).toEqual(many);
  });

  it("tells callers of an outage, and sends each item alone after any other error", async () => {
    let error: Error | null = new Outage("gone");
    const alone: string[] = [];
    const batcher = new Batcher<string, string>({
      ...errorKinds,
      send: async (items, { isAlone }) => {
        if (error !== null) throw error;
        if (items.includes("bad")) throw new Error("bad item");
        if (isAlone) alone.push(...items);
        return items;
      },
    });
    await expect(batcher.add("a")).rejects.toThrow("gone");
    error = null;
    const [good, bad] = await Promise.allSettled([batcher.add("good"), batcher.add("bad")]);
    expect(good).toMatchObject({ status: "fulfilled", value: "good" });
    expect(bad).toMatchObject({ status: "rejected" });
    expect(alone).toEqual(["good"]);
  });
});

describe("the batcher of guarded items", () => {
  it("sends items in order of their keys, and two calls at once with two lanes", async () => {
    const { add, calls, next } = guardedBatcher(2);
    void add("b");
    void add("a");
    expect((await next(1)).values).toEqual(["a", "b"]);
    void add("c");
    expect((await next(2)).values).toEqual(["c"]);
    void add("d");
    await turns(5);
    expect(calls).toHaveLength(2);
  });

  it("sends nothing of a key that is in flight, in the other lane neither", async () => {
    const { add, calls, next } = guardedBatcher(2);
    const first = add("a", "1");
    const call = await next(1);
    const second = add("a", "2");
    await turns(5);
    expect(calls).toHaveLength(1);
    call.answer();
    expect(await first).toEqual({ kind: "done", value: "1" });
    (await next(2)).answer();
    expect(await second).toEqual({ kind: "done", value: "2" });
  });

  it("repeats a locked item alone, in order within its key, and delays nobody else", async () => {
    const { add, next } = guardedBatcher();
    const first = add("a", "1");
    const second = add("a", "2");
    const other = add("b", "3");
    (await next(1)).answer(["1", "2"]);
    expect(await other).toEqual({ kind: "done", value: "3" });
    const free = add("c", "4");
    (await next(2)).answer();
    expect(await free).toEqual({ kind: "done", value: "4" });
    const alone = await next(3);
    expect(alone).toMatchObject({ values: ["1"], isAlone: true });
    alone.answer(["1"]);
    const again = await next(4);
    expect(again.values).toEqual(["1"]);
    again.answer();
    expect(await first).toEqual({ kind: "done", value: "1" });
    const last = await next(5);
    expect(last).toMatchObject({ values: ["2"], isAlone: true });
    last.answer();
    expect(await second).toEqual({ kind: "done", value: "2" });
  });

  it("repeats a call during an outage and reports that once", async () => {
    const { add, next, failures } = guardedBatcher();
    const answer = add("a");
    (await next(1)).fail(new Outage());
    (await next(2)).fail(new Outage());
    (await next(3)).answer();
    expect(await answer).toEqual({ kind: "done", value: "a" });
    expect(failures).toHaveLength(1);
  });

  it("answers dropped items at once, and tells of a late answer", async () => {
    const { batcher, add, next, late } = guardedBatcher();
    const answer = add("a");
    const call = await next(1);
    expect(batcher.has("a")).toBe(true);
    batcher.drop("a");
    expect(await answer).toEqual({ kind: "dropped" });
    expect(batcher.has("a")).toBe(false);
    call.answer();
    await turns(3);
    expect(late).toEqual(["a"]);
  });

  it("sends a new item of a key whose locked item was dropped", async () => {
    const { batcher, add, next } = guardedBatcher();
    const old = add("a", "old");
    (await next(1)).answer(["old"]);
    await turns(2);
    batcher.drop("a");
    expect(await old).toEqual({ kind: "dropped" });
    const fresh = add("a", "fresh");
    (await next(2)).answer();
    expect(await fresh).toEqual({ kind: "done", value: "fresh" });
  });
});
