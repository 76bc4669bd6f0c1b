import { job, machine, type } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

const waits = (runId: string): Promise<unknown> =>
  until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
const inboxOf = (runId: string): Promise<{ name: string; payload: unknown }[]> =>
  sql("select name, payload from signals where run_id = $1 order by seq", [runId]);

describe("the end of a run", () => {
  const ending = machine({
    name: "ending",
    state: type<{ how: "done" | "stop" | "throw" }>(),
    steps: {
      start: (ctx) => ctx.awaitSignal("end", "woken", ctx.state),
      woken: (ctx) => {
        if (ctx.state.how === "throw") throw new Error("thrown");
        return ctx.state.how === "done" ? ctx.done() : ctx.stop("stopped");
      },
    },
  });

  it.each(["done", "stop", "throw"] as const)("by %s clears the inbox", async (how) => {
    await serve([ending]);
    const { runId } = await pawl.start(ending, { how });
    await pawl.signal(runId, "other", { big: "x".repeat(10_000) });
    await waits(runId);
    await pawl.signal(runId, "end");
    await pawl.result(runId).catch(() => {});
    expect(await inboxOf(runId)).toEqual([]);
  });

  it("by cancel clears the inbox, of a waiting run as of a running one", async () => {
    const held = gate();
    const idle = job({ name: "idle", run: held.pass });
    await serve([ending, idle]);
    const parked: string = (await pawl.start(ending, { how: "done" })).runId;
    await waits(parked);
    const running: string = (await pawl.start(idle)).runId;
    await until("it runs", held.entered);
    for (const runId of [parked, running]) {
      await pawl.signal(runId, "other");
      await pawl.runs.cancel(runId);
      expect(await inboxOf(runId)).toEqual([]);
    }
    held.open();
  });

  it("clears what a job was sent, which it is accepted for and never sees", async () => {
    const held = gate();
    const deaf = job({ name: "deaf", run: held.pass });
    await serve([deaf]);
    const { runId } = await pawl.start(deaf);
    await until("it runs", held.entered);
    expect(await pawl.signal(runId, "hello")).toEqual({ delivered: true });
    expect(await inboxOf(runId)).toHaveLength(1);
    held.open();
    await pawl.result(runId);
    expect(await inboxOf(runId)).toEqual([]);
  });
});
