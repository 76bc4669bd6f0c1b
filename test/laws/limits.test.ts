import { InvalidOption, InvalidOutcome, job, machine, serve as serveDirectly, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { sql, url } = database;
const { pawl, serve } = testEngine(database);
/** Neither polls nor repairs: what goes on is told by the call that made it possible, or is due. */
const rarely = { pollInterval: "1h", maxPollInterval: "1h", reapInterval: "1h" } as const;
await pawl.limits.set("narrow", { allowed: 1, period: "1s", burst: 3 });

// When runs are claimed, by the clock of the database: that of the transaction, begun a moment before its claim.
await sql("create table public.claims (at timestamptz, rate_limit text, weight int)");
await sql(`create function public.note_claim() returns trigger language plpgsql as $$ begin
  insert into public.claims values (transaction_timestamp(), new.rate_limit, new.weight); return null; end $$`);
await sql(`create trigger note_claim after update on runs for each row
  when (new.locked_by is not null and old.locked_by is null and new.rate_limit is not null)
  execute function public.note_claim()`);

/** How many tokens more than burst + rate · t were taken in the worst of all windows. */
const worstExcess = async (
  limit: string,
  { rate, burst }: { rate: number; burst: number },
): Promise<number> => {
  const claims = await sql<{ s: number; weight: number }>(
    "select extract(epoch from at)::float8 as s, weight from public.claims where rate_limit = $1 order by at",
    [limit],
  );
  let worst = Number.NEGATIVE_INFINITY;
  for (let first = 0; first < claims.length; first++) {
    let taken = 0;
    for (let last = first; last < claims.length; last++) {
      taken += claims[last]!.weight;
      worst = Math.max(worst, taken - burst - rate * (claims[last]!.s - claims[first]!.s));
    }
  }
  return worst;
};
const throttled = async (queue: string): Promise<number> =>
  (await sql("select from runs where queue = $1 and throttled", [queue])).length;

describe("a rate limit", () => {
  it("lets no window have more than burst + rate · t, on several workers, and everything through in the end", async () => {
    await pawl.limits.set("window", { allowed: 30, period: "1s", burst: 4 });
    const work = job({ name: "window", queue: "window", run: () => null });
    for (let n = 0; n < 3; n++) await serve([work], { queues: { window: 5 } });
    const items = Array.from({ length: 50 }, (_, n) => ({
      input: undefined as never,
      rateLimit: "window",
      weight: n % 10 === 9 ? 3 : 1,
    }));
    const started = await pawl.startMany(work, items);
    for (const { runId } of started) expect(await pawl.result(runId)).toBe(null);
    expect(await sql("select from public.claims where rate_limit = 'window'")).toHaveLength(50);
    // less than one token: a claim reads its clock a moment after its transaction began
    expect(await worstExcess("window", { rate: 30, burst: 4 })).toBeLessThan(1);
  });

  it("never keeps unlimited runs of the same queue back, without any poll", async () => {
    await pawl.limits.set("trickle", { allowed: 1, period: "1h" });
    const work = job({ name: "trickle", queue: "trickle", run: () => "through" });
    await serve([work], { ...rarely, queues: { trickle: 2 } });
    const slow = await pawl.startMany(work, Array(40).fill({ input: null as never, rateLimit: "trickle" }));
    // Before the others start: a claim that finds its slots taken is released, and its token is spent.
    expect(await pawl.result(slow[0]!.runId)).toBe("through");
    const free = await pawl.startMany(work, Array(10).fill({ input: null as never }));
    for (const { runId } of free) expect(await pawl.result(runId)).toBe("through");
    await until("the others are put off", async () => (await throttled("trickle")) === 39);
    expect(await pawl.why(slow[39]!.runId)).toMatchObject({ reason: "throttled", rateLimit: "trickle" });
  });

  it("has a bucket for every key", async () => {
    await pawl.limits.set("per-key", { allowed: 1, period: "1h" });
    const work = job({ name: "per-key", queue: "per-key", run: () => null });
    await serve([work], rarely);
    const [a, again, b] = await pawl.startMany(
      work,
      ["a", "a", "b"].map((key) => ({ input: null as never, rateLimit: { name: "per-key", key } })),
    );
    await pawl.result(a!.runId);
    await pawl.result(b!.runId);
    await until("the second of a is put off", async () => (await throttled("per-key")) === 1);
    expect(await pawl.why(again!.runId)).toMatchObject({ reason: "throttled", rateLimit: "per-key:a" });
  });

  it("holds for the step that next names it for and for its retries, and ends with that step", async () => {
    await pawl.limits.set("steps", { allowed: 200, period: "1s", burst: 3 });
    const calls = machine({
      name: "calls",
      queue: "calls",
      steps: {
        start: (ctx) => ctx.next("call", {}, { rateLimit: "steps", weight: 2 }),
        call: (ctx) => (ctx.attempt < 2 ? ctx.retry({}, 0) : ctx.next("after", {}, { priority: 1 })),
        after: (ctx) => ctx.done("after"),
      },
    });
    await serve([calls], rarely);
    expect(await pawl.result((await pawl.start(calls, {})).runId)).toBe("after");
    const rows = await sql("select weight from public.claims where rate_limit = 'steps'");
    expect(rows).toEqual(Array(3).fill({ weight: 2 }));
  });

  it("and a partition key keep both laws, without any poll or repair", async () => {
    await pawl.limits.set("both", { allowed: 100, period: "1s", burst: 3 });
    const running = new Set<string>();
    const beside: string[] = [];
    const work = job({
      name: "both",
      queue: "both",
      run: async (_ctx, key: string) => {
        if (running.has(key)) beside.push(key);
        running.add(key);
        await new Promise((resolve) => setImmediate(resolve));
        running.delete(key);
      },
    });
    await serve([work], rarely);
    const keys = Array.from({ length: 40 }, (_, n) => `both-${n % 3}`);
    const items = keys.map((key) => ({ input: key, partitionKey: key, rateLimit: "both" }));
    for (const { runId } of await pawl.startMany(work, items)) await pawl.result(runId);
    expect(beside).toEqual([]);
    expect(await worstExcess("both", { rate: 100, burst: 3 })).toBeLessThan(2);
  });
});

describe("a limit that nobody has set, or a weight above its burst", () => {
  const never = job({ name: "never", queue: "never", run: () => null });
  const written = (): Promise<unknown[]> => sql("select from runs where name = 'never'");
  const bad = [
    [{ rateLimit: "unheard-of" }, /there is no rate limit "unheard-of"/],
    [
      { rateLimit: "narrow", weight: 4 },
      /weight 4 is more than the burst of the rate limit "narrow", which is 3/,
    ],
  ] as const;

  it("is refused by start and startMany before anything is written", async () => {
    const input = undefined as never;
    for (const [options, message] of bad) {
      const one = pawl.start(never, input, options);
      await expect(one).rejects.toThrow(InvalidOption);
      await expect(one).rejects.toThrow(message);
      await expect(pawl.startMany(never, [{ input }, { input, ...options }])).rejects.toThrow(message);
    }
    expect(await written()).toEqual([]);
  });

  it("is refused alone when many start at the same moment", async () => {
    const input = undefined as never;
    const starts = await Promise.allSettled([
      pawl.start(never, input),
      ...bad.map(([options]) => pawl.start(never, input, options)),
      pawl.start(never, input, { rateLimit: "narrow", weight: 3 }),
    ]);
    expect(starts.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(await written()).toHaveLength(2);
  });

  it("is an error of the step that names it, which handle gets; without handle the run fails", async () => {
    const state = type<{ rateLimit: string; weight?: number }>();
    const handled = machine({
      name: "handled",
      queue: "handled",
      state,
      steps: {
        start: (ctx) => ctx.next("last", ctx.state, ctx.state),
        last: (ctx) => ctx.done("last"),
      },
      handle: (error, ctx) => ctx.stop(`handled: ${(error as Error).message}`),
    });
    const unhandled = machine({
      name: "unhandled",
      queue: "handled",
      state,
      steps: {
        start: (ctx) => ctx.next("last", ctx.state, ctx.state),
        last: (ctx) => ctx.done("last"),
      },
    });
    await serve([handled, unhandled], rarely);
    for (const [options, message] of bad) {
      const caught = await pawl.start(handled, options);
      await expect(pawl.result(caught.runId)).rejects.toThrow(/handled: /);
      await expect(pawl.result(caught.runId)).rejects.toThrow(message);
      const failed = await pawl.start(unhandled, options);
      await expect(pawl.result(failed.runId)).rejects.toThrow(message);
      const { error } = await pawl.runs.get(failed.runId);
      expect(error).toMatchObject({ name: InvalidOutcome.name, step: "start" });
    }
  });
});

describe("limits.set", () => {
  it("takes effect at once on runs that were put off, without any poll", async () => {
    await pawl.limits.set("raised", { allowed: 1, period: "1h" });
    const work = job({ name: "raised", queue: "raised", run: () => "through" });
    await serve([work], rarely);
    const started = await pawl.startMany(work, Array(30).fill({ input: null as never, rateLimit: "raised" }));
    await until("all but one are put off", async () => (await throttled("raised")) === 29);
    await pawl.limits.set("raised", { allowed: 1_000, period: "1s", burst: 100 });
    for (const { runId } of started) expect(await pawl.result(runId)).toBe("through");
  });

  it("is last writer wins, and serve sets limits too", async () => {
    const work = job({ name: "setter", queue: "setter", run: () => null });
    await serve([work], {
      limits: { own: { allowed: 5, period: "1m" }, half: { allowed: 0.5, period: 10 } },
    });
    const own = async () => (await pawl.limits.list()).filter(({ name }) => ["own", "half"].includes(name));
    expect(await own()).toEqual([
      { name: "half", allowed: 0.5, periodMs: 10, burst: 1, concurrent: null },
      { name: "own", allowed: 5, periodMs: 60_000, burst: 5, concurrent: null },
    ]);
    await pawl.limits.set("own", { allowed: 7, period: "2s", burst: 9 });
    expect((await own())[1]).toEqual({
      name: "own",
      allowed: 7,
      periodMs: 2_000,
      burst: 9,
      concurrent: null,
    });
    await serve([work], { limits: { own: { allowed: 1, period: "1s" } } });
    expect((await own())[1]).toEqual({
      name: "own",
      allowed: 1,
      periodMs: 1_000,
      burst: 1,
      concurrent: null,
    });
  });

  it.each<[string, unknown]>([
    ["Bad Name", { allowed: 1, period: "1s" }],
    ["bad", { allowed: 0, period: "1s" }],
    ["bad", { allowed: -1, period: "1s" }],
    ["bad", { allowed: Number.NaN, period: "1s" }],
    ["bad", { allowed: "5", period: "1s" }],
    ["bad", { allowed: 1 }],
    ["bad", { allowed: 1, period: 0 }],
    ["bad", { allowed: 1, period: "1" }],
    ["bad", { allowed: 1, period: "1s", burst: 0.5 }],
    ["bad", { allowed: 1e-9, period: "1d" }],
    ["bad", { allowed: 1, period: "1s", brust: 2 }],
    ["bad", undefined],
  ])("and serve refuse %s: %j", async (name, options) => {
    await expect(pawl.limits.set(name, options as never)).rejects.toThrow(InvalidOption);
    const work = job({ name: "bad", run: () => null });
    expect(() => serveDirectly([work], { url, limits: { [name]: options as never } })).toThrow(InvalidOption);
    expect((await pawl.limits.list()).map((limit) => limit.name)).not.toContain(name);
  });

  it.each<[string, object]>([
    ["a weight without a limit", { weight: 2 }],
    ["a weight of 0", { rateLimit: "narrow", weight: 0 }],
    ["a broken weight", { rateLimit: "narrow", weight: 1.5 }],
    ["a name with a colon", { rateLimit: "narrow:key" }],
    ["an empty key", { rateLimit: { name: "narrow", key: "" } }],
    ["no key", { rateLimit: { name: "narrow" } }],
    ["a number", { rateLimit: 7 }],
  ])("start refuses %s", async (_what, options) => {
    const work = job({ name: "refused", run: () => null });
    await expect(pawl.start(work, undefined as never, options as never)).rejects.toThrow(InvalidOption);
    expect(await sql("select from runs where name = 'refused'")).toEqual([]);
  });
});
