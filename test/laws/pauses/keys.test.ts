import { job, machine, type, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const { pawl, serve } = testEngine(database);
const passBy = job({ name: "pass-by", run: () => "passed" });
const letOthersPass = async (): Promise<void> => {
  expect(await pawl.result((await pawl.start(passBy, undefined)).runId)).toBe("passed");
};

describe("a paused run with a partition key", () => {
  it("keeps its place: the runs behind it wait, and follow in order when it is resumed", async () => {
    const order: string[] = [];
    const held = gate();
    const keyed = job({
      name: "keyed",
      run: async (_ctx, label: string) => {
        order.push(label);
        if (label === "a") await held.pass();
      },
    });
    await serve([keyed, passBy]);
    const a = await pawl.start(keyed, "a", { partitionKey: "k" });
    await until("the first runs", () => held.entered() === 1);
    const b = await pawl.start(keyed, "b", { partitionKey: "k" });
    const c = await pawl.start(keyed, "c", { partitionKey: "k" });
    const other = await pawl.start(keyed, "other", { partitionKey: "other" });
    await pawl.runs.pause(b.runId);
    held.open();
    await Promise.all([a, other].map(({ runId }) => pawl.result(runId)));
    await letOthersPass();
    expect(order).toEqual(["a", "other"]);
    expect(await pawl.why(c.runId)).toMatchObject({ reason: "key_taken", holder: b.runId });
    await pawl.runs.resume(b.runId);
    await Promise.all([b, c].map(({ runId }) => pawl.result(runId)));
    expect(order).toEqual(["a", "other", "b", "c"]);
  });

  it("gives its place to the next when it is cancelled", async () => {
    const quick = job({ name: "quick", run: (_ctx, label: string) => label });
    await serve([quick]);
    const first = await pawl.start(quick, "first", { partitionKey: "c", delay: "1h" });
    await pawl.runs.pause(first.runId);
    await sql("update runs set eligible_at = clock() - interval '1 second' where id = $1", [first.runId]);
    const second = await pawl.start(quick, "second", { partitionKey: "c", delay: "100ms" });
    await until("it is next in line", async () => (await pawl.why(second.runId)).reason === "key_taken");
    await pawl.runs.cancel(first.runId);
    expect(await pawl.result(second.runId)).toBe("second");
  });

  it("frees the key between two steps of a machine, so that runs which were due before it go first", async () => {
    const order: string[] = [];
    const held = gate();
    const twice = machine({
      name: "twice",
      steps: {
        start: async (ctx) => {
          order.push("twice 1");
          await held.pass();
          return ctx.next("end", {});
        },
        end: (ctx) => {
          order.push("twice 2");
          return ctx.done();
        },
      },
    });
    const behind = job({ name: "behind", run: () => void order.push("behind") });
    await serve([twice, behind, passBy]);
    const machineRun = await pawl.start(twice, {}, { partitionKey: "m" });
    await until("it runs", () => held.entered() === 1);
    const next = await pawl.start(behind, undefined, { partitionKey: "m" });
    await pawl.runs.pause(machineRun.runId);
    held.open();
    await pawl.result(next.runId);
    await letOthersPass();
    expect(order).toEqual(["twice 1", "behind"]);
    await pawl.runs.resume(machineRun.runId);
    await pawl.result(machineRun.runId);
    expect(order).toEqual(["twice 1", "behind", "twice 2"]);
  });
});

describe("a pause", () => {
  it("of throttled runs keeps no tokens of their limit from others", async () => {
    await pawl.limits.set("narrow", { allowed: 1, period: "1s", burst: 1 });
    const limited = job({ name: "limited", run: (_ctx, label: string) => label });
    const free = job({ name: "free", run: (_ctx, label: string) => label });
    await serve([limited, free]);
    const rateLimit = "narrow";
    const started = await pawl.startMany(
      limited,
      ["a", "b", "c"].map((input) => ({ input, rateLimit })),
    );
    await until("the others are put off", async () => {
      const [row] = await sql<{ n: string }>("select count(*) as n from runs where throttled");
      return Number(row!.n) >= 2;
    });
    await pawl.definitions.pause(limited);
    const next = await pawl.start(free, "free", { rateLimit });
    expect(await pawl.result(next.runId)).toBe("free");
    await pawl.definitions.resume(limited);
    await Promise.all(started.map(({ runId }) => pawl.result(runId)));
  });

  it("reaches a run that was claimed ahead and waits for its slot", async () => {
    const held = gate();
    const begun: string[] = [];
    const waiting = job({
      name: "waiting",
      queue: "one",
      run: async (_ctx, label: string) => {
        begun.push(label);
        if (label === "first") await held.pass();
      },
    });
    await serve([waiting, passBy], { queues: { one: 1, default: 1 }, prefetch: 5 });
    const first = await pawl.start(waiting, "first");
    await until("the first runs", () => held.entered() === 1);
    const second = await pawl.start(waiting, "second");
    await until(
      "the second is claimed",
      async () => (await pawl.runs.get(second.runId)).phase === "executing",
    );
    await pawl.runs.pause(second.runId);
    // Longer than a worker trusts an old answer.
    await new Promise((resolve) => setTimeout(resolve, 600));
    held.open();
    await pawl.result(first.runId);
    await until("it is released", async () => (await pawl.runs.get(second.runId)).phase === "runnable");
    expect(begun).toEqual(["first"]);
    await pawl.runs.resume(second.runId);
    await pawl.result(second.runId);
    expect(begun).toEqual(["first", "second"]);
  });

  it("reaches a workflow whose body waits for code outside of its steps", async () => {
    const held = gate();
    const begun: string[] = [];
    const outside = workflow({
      name: "outside",
      run: async ({ step }) => {
        await step.run("first", () => void begun.push("first"));
        await held.pass();
        await step.run("second", () => void begun.push("second"));
      },
    });
    await serve([outside]);
    const { runId } = await pawl.start(outside, undefined);
    await until("the body waits", () => held.entered() === 1);
    await pawl.runs.pause(runId);
    // Longer than a worker trusts an old answer.
    await new Promise((resolve) => setTimeout(resolve, 600));
    held.open();
    await until("it is released", async () => (await pawl.runs.get(runId)).phase === "runnable");
    expect(begun).toEqual(["first"]);
    await pawl.runs.resume(runId);
    await pawl.result(runId);
    expect(begun).toEqual(["first", "second"]);
  });
});

it("a pause by SQL, which no process is told of, stops every worker, and its end lets all go on", async () => {
  const many = machine({
    name: "many",
    queue: "many",
    state: type<{ n: number }>(),
    steps: {
      start: async (ctx) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return ctx.state.n === 30 ? ctx.done(ctx.state.n) : ctx.next("start", { n: ctx.state.n + 1 });
      },
    },
  });
  const queues = { many: 5 };
  await serve([many], { queues });
  await serve([many], { queues });
  const started = await pawl.startMany(
    many,
    Array.from({ length: 40 }, (_, n) => ({ input: { n: 0 }, partitionKey: `k${n % 10}` })),
  );
  for (let round = 0; round < 5; round++) {
    await sql("select add_pause('queue', 'many', null, 'sql', null)");
    const [paused] = await sql<{ at: string }>("select clock_timestamp()::text as at");
    await until("claims that began before it was committed have ended", async () => {
      const [row] = await sql<{ n: string }>(
        `select count(*) as n from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and state = 'active' and xact_start < $1`,
        [paused!.at],
      );
      return row!.n === "0";
    });
    await until("nothing is executed", async () => {
      const [row] = await sql<{ n: string }>(
        "select count(*) as n from runs where queue = 'many' and locked_by is not null",
      );
      return row!.n === "0";
    });
    const turns = await sql("select id, state, step, status from runs where queue = 'many' order by id");
    await letOthersPassIn();
    expect(await sql("select id, state, step, status from runs where queue = 'many' order by id")).toEqual(
      turns,
    );
    await sql("select remove_pauses('queue', 'many', null)");
  }
  const results = await Promise.all(started.map(({ runId }) => pawl.result(runId)));
  expect(new Set(results)).toEqual(new Set([30]));
});

/** Workers have polled meanwhile. */
async function letOthersPassIn(): Promise<void> {
  for (let n = 0; n < 3; n++) await letOthersPass();
}
