import { InvalidState, machine, RunFailed, type } from "pawl";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { aRun } from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);

describe("errors of a machine", () => {
  it("stop fails the run with its reason, the step named", async () => {
    const stopping = machine({ name: "stopping", steps: { start: (ctx) => ctx.stop("no stock") } });
    await serve([stopping]);
    const { runId } = await pawl.start(stopping, {});
    await expect(pawl.result(runId)).rejects.toMatchObject({
      code: "RunFailed",
      error: { message: "no stock", step: "start" },
    });
  });

  it("a thrown value, any value, goes to handle, which decides", async () => {
    const handled: unknown[] = [];
    const throwing = machine({
      name: "throwing",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => {
          const values: unknown[] = [new Error("first"), undefined, "third"];
          if (ctx.attempt < values.length) throw values[ctx.attempt];
          return ctx.done(ctx.state);
        },
      },
      handle: (error, ctx) => {
        handled.push(error);
        return ctx.retry({ n: ctx.state.n + 1 }, 0);
      },
    });
    await serve([throwing]);
    const { runId } = await pawl.start(throwing, { n: 0 });
    expect(await pawl.result(runId)).toEqual({ n: 3 });
    expect(handled).toEqual([new Error("first"), undefined, "third"]);
  });

  it("without handle an error stops the run, with its cause", async () => {
    const failing = machine({
      name: "failing",
      steps: {
        start: () => {
          throw new TypeError("broken", { cause: new Error("deep") });
        },
      },
    });
    await serve([failing]);
    const { runId } = await pawl.start(failing, {});
    const error = await pawl.result(runId).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunFailed);
    expect((error as RunFailed).error).toMatchObject({
      name: "TypeError",
      message: "broken",
      step: "start",
      cause: { name: "Error", message: "deep" },
    });
  });

  it("if handle throws too the run fails and both errors are recorded", async () => {
    const hopeless = machine({
      name: "hopeless",
      steps: {
        start: () => {
          throw new Error("the step's");
        },
      },
      handle: () => {
        throw new RangeError("the handler's");
      },
    });
    await serve([hopeless]);
    const { runId } = await pawl.start(hopeless, {});
    const { error } = await pawl.runs.get(await ended(runId));
    expect(error).toMatchObject({
      name: "RangeError",
      message: "the handler's",
      step: "start",
      cause: { name: "Error", message: "the step's" },
    });
  });

  it("an unknown step or a wrong outcome is an error of the step that returned it, never a stuck run", async () => {
    const lost = machine({
      name: "lost",
      steps: {
        start: (ctx) => ctx.next("shipp" as never, {}),
        ship: (ctx) => ctx.done(),
      },
    });
    const forgetful = machine({ name: "forgetful", steps: { start: (() => undefined) as never } });
    await serve([lost, forgetful]);
    const one = await pawl.start(lost, {});
    const other = await pawl.start(forgetful, {});
    expect((await pawl.runs.get(await ended(one.runId))).error).toMatchObject({
      code: "InvalidOutcome",
      step: "start",
      message: expect.stringContaining('did you mean "ship"') as string,
    });
    expect((await pawl.runs.get(await ended(other.runId))).error!.message).toContain("return");
    const stateless = machine({
      name: "stateless",
      steps: { start: (ctx) => ctx.next("start", undefined as never) },
      handle: () => undefined as never,
    });
    await serve([stateless]);
    const { error } = await pawl.runs.get(await ended((await pawl.start(stateless, {})).runId));
    expect(error!.message).toContain("handle returned undefined");
    expect(error!.cause!.message).toContain("its state is missing");
  });

  it("an outcome that was tampered with is an error of the step too", async () => {
    const tampered = machine({
      name: "tampered",
      steps: { start: (ctx) => ({ ...ctx.done(), kind: "finish" }) as never },
    });
    await serve([tampered]);
    const { runId } = await pawl.start(tampered, {});
    expect((await pawl.runs.get(await ended(runId))).error).toMatchObject({ code: "InvalidOutcome" });
  });

  it("handle sees the state as it is stored, whatever the step did to its copy", async () => {
    const careless = machine({
      name: "careless",
      state: type<{ n: number }>(),
      steps: {
        start: (ctx) => {
          ctx.state.n = 99;
          throw new Error("after the change");
        },
      },
      handle: (_error, ctx) => ctx.done(ctx.state.n),
    });
    await serve([careless]);
    expect(await pawl.result((await pawl.start(careless, { n: 1 })).runId)).toBe(1);
  });

  it("a state that JSON cannot carry is an error of the step, with the path of the value", async () => {
    const bad: Record<string, unknown> = {
      bigint: { deep: [1n] },
      nan: { n: Number.NaN },
      map: { m: new Map() },
      nul: { s: "\u0000" },
    };
    const encoding = machine({
      name: "encoding",
      state: type<{ which: string }>(),
      steps: { start: (ctx) => ctx.next("start", bad[ctx.state.which] as never) },
      handle: (error, ctx) => ctx.done((error as { path: string }).path),
    });
    await serve([encoding]);
    const paths = await Promise.all(
      Object.keys(bad).map(async (which) => pawl.result((await pawl.start(encoding, { which })).runId)),
    );
    expect(paths).toEqual(["state.deep[0]", "state.n", "state.m", "state.s"]);
  });

  it("a result that is too large is an error of the step", async () => {
    const large = machine({
      name: "large",
      steps: { start: (ctx) => ctx.done("x".repeat(2 * 1024 * 1024)) },
    });
    await serve([large]);
    const { runId } = await pawl.start(large, {});
    expect((await pawl.runs.get(await ended(runId))).error!.code).toBe("PayloadTooLarge");
    const roomy = machine({ name: "roomy", steps: { start: (ctx) => ctx.done("x".repeat(2_000_000)) } });
    await serve([roomy], { maxPayloadBytes: 3_000_000 });
    expect(await pawl.result((await pawl.start(roomy, {})).runId)).toHaveLength(2_000_000);
  });

  it("a state that no longer parses goes to handle with the raw state", async () => {
    const strict = z.object({ n: z.number() });
    const changed = machine({
      name: "changed",
      state: strict,
      steps: {
        start: (ctx) => ctx.next("second", { n: "not a number" } as never),
        second: (ctx) => ctx.done(),
      },
      handle: (error, ctx) => ctx.done([error instanceof InvalidState, ctx.state]),
    });
    await serve([changed]);
    const { runId } = await pawl.start(changed, { n: 1 });
    expect(await pawl.result(runId)).toEqual([true, { n: "not a number" }]);
  });

  it("a run at a step that its definition no longer has fails with the names it has", async () => {
    const renamed = machine({ name: "renamed", initial: "begin", steps: { begin: (ctx) => ctx.done() } });
    const [started] = await database.store.start([aRun({ name: "renamed", step: "gone" })], {
      allOrNothing: false,
      claim: null,
    });
    await serve([renamed]);
    const { error } = await pawl.runs.get(await ended(started!.runId));
    expect(error).toMatchObject({
      code: "InvalidState",
      message: expect.stringContaining("begin") as string,
    });
  });
});

async function ended(runId: string): Promise<string> {
  await until("the run has ended", async () => (await pawl.runs.get(runId)).completedAt !== null);
  return runId;
}
