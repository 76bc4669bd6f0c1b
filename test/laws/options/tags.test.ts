import { child, job, machine, type Tags, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql, store } = database;

const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
const echo = job({ name: "echo", run: (ctx) => ctx.tags });
const parent = machine({
  name: "parent",
  state: type<{ tags?: Tags }>(),
  steps: {
    start: (ctx) => ctx.spawn("end", [child(echo, undefined, { tags: ctx.state.tags })], ctx.state),
    end: (ctx) => ctx.done({ own: ctx.tags, child: ctx.children[0]!.output }),
  },
});
const invoking = workflow({
  name: "invoking",
  run: async ({ step, tags }) => ({ own: tags, child: await step.invoke("echo", echo) }),
});
await serve([echo, parent, invoking]);

const tags = { customer: "42", plan: "pro" };
const ids = async (options: Parameters<typeof pawl.runs.list>[0]): Promise<string[]> =>
  (await pawl.runs.list(options)).runs.map(({ runId }) => runId);

describe("the tags of a run", () => {
  it("are in ctx.tags, also of a run that this process starts already claimed, and in runs.get", async () => {
    const { runId } = await pawl.start(echo, undefined, { tags });
    expect(await pawl.result(runId)).toEqual(tags);
    expect((await pawl.runs.get(runId)).tags).toEqual(tags);
    const { runId: claimed } = await pawl.start(echo, undefined, { tags, partitionKey: "a" });
    expect(await pawl.result(claimed)).toEqual(tags);
  });

  it("of a run without any are empty, and its row says that nobody must look", async () => {
    const { runId } = await pawl.start(echo, undefined, { tags: {} });
    expect(await pawl.result(runId)).toEqual({});
    expect(await sql("select has_extras from runs where id = $1", [runId])).toEqual([{ has_extras: null }]);
  });

  it("go to its children, unless they have their own or none", async () => {
    const outputOf = async (given?: Tags): Promise<unknown> => {
      const state = given === undefined ? {} : { tags: given };
      const { runId } = await pawl.start(parent, state, { tags });
      return pawl.result(runId);
    };
    expect(await outputOf()).toEqual({ own: tags, child: tags });
    expect(await outputOf({ plan: "free" })).toEqual({ own: tags, child: { plan: "free" } });
    expect(await outputOf({})).toEqual({ own: tags, child: {} });
    const { runId } = await pawl.start(invoking, undefined, { tags });
    expect(await pawl.result(runId)).toEqual({ own: tags, child: tags });
  });

  it("of a start that a key refuses change nothing", async () => {
    const first = await pawl.start(parked, null, { uniqueKey: "u", tags: { n: "1" } });
    const items = [
      { input: null, uniqueKey: "u", tags: { n: "2" } },
      { input: null, uniqueKey: "v", tags: { n: "3" } },
    ];
    const [again, other] = await pawl.startMany(parked, items);
    expect(again).toEqual({ ...first, created: false });
    expect((await pawl.runs.get(first.runId)).tags).toEqual({ n: "1" });
    expect((await pawl.runs.get(other!.runId)).tags).toEqual({ n: "3" });
    expect(await sql("select run_id from tags where value = '2' and name = 'n'")).toEqual([]);
  });

  it("are deleted with the run", async () => {
    const { runId } = await pawl.start(echo, undefined, { tags: { gone: "soon" }, retention: 0 });
    await pawl.result(runId);
    await until("its claim has ended", async () => {
      await store.sweep(1_000);
      return (await sql("select 1 from runs where id = $1", [runId])).length === 0;
    });
    expect(await sql("select * from tags where run_id = $1", [runId])).toEqual([]);
  });

  it("may hold any text, an empty one too", async () => {
    const odd = { empty: "", quoted: `a "b" \\ {c},`, "dotted.name": "ä✓", __proto: "x" };
    const { runId } = await pawl.start(parked, null, { tags: odd });
    expect((await pawl.runs.get(runId)).tags).toEqual(odd);
    expect(await ids({ tags: { quoted: odd.quoted } })).toEqual([runId]);
    expect(await ids({ tags: { empty: "", "dotted.name": "ä✓" } })).toEqual([runId]);
  });
});

describe("runs.list by tags", () => {
  it("finds runs that have all of them, newest first, page by page, and counts them", async () => {
    const started = await pawl.startMany(
      parked,
      Array.from({ length: 30 }, (_, n) => ({ input: n, tags: { team: "red", even: String(n % 2 === 0) } })),
    );
    const newest = started.map(({ runId }) => runId).toReversed();
    const first = await pawl.runs.list({ tags: { team: "red" }, limit: 25 });
    const second = await pawl.runs.list({ tags: { team: "red" }, limit: 25, cursor: first.cursor! });
    expect([...first.runs, ...second.runs].map(({ runId }) => runId)).toEqual(newest);
    expect(second.cursor).toBeNull();
    expect(await pawl.runs.count({ tags: { team: "red", even: "true" } })).toBe(15);
    expect(await ids({ tags: { team: "red", even: "true" }, limit: 100 })).toEqual(
      newest.filter((_id, index) => index % 2 === 1),
    );
    expect(await ids({ tags: { team: "red", even: "maybe" } })).toEqual([]);
  });

  it("takes the other filters too", async () => {
    const { runId } = await pawl.start(parked, { a: 1 }, { tags: { only: "this" }, queue: "elsewhere" });
    await pawl.start(parked, { a: 2 }, { tags: { only: "this" } });
    expect(await ids({ tags: { only: "this" }, queue: "elsewhere" })).toEqual([runId]);
    expect(await ids({ tags: { only: "this" }, input: { a: 1 } })).toEqual([runId]);
    expect(await ids({ tags: { only: "this" }, status: "failed" })).toEqual([]);
    expect(await ids({ tags: { only: "this" }, name: "other" })).toEqual([]);
    expect(await pawl.runs.count({ tags: { only: "this" }, name: "parked" })).toBe(2);
  });

  it("without any tag is a list of all runs", async () => {
    expect(await ids({ tags: {}, limit: 1 })).toHaveLength(1);
  });
});
