import { createServer } from "@pawl/server";
import { connect, job, machine, serve, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";

const database = await testDatabase();
const server = await createServer({ database: database.url, port: 0, logger: silent });
const url = await server.listen();
const direct = connect(database.url);
afterAll(async () => {
  await direct.close();
  await server.close();
});

describe("a worker behind a server", () => {
  it("executes jobs, machines and workflows", async () => {
    const echo = job({ name: "echo", run: (_ctx, n: number) => n + 1 });
    const walk = machine({
      name: "walk",
      steps: { start: (ctx) => ctx.next("end", { n: 1 }), end: (ctx) => ctx.done("walked") },
    });
    const flow = workflow({
      name: "flow",
      run: async (ctx, n: number) => {
        const one = await ctx.step.run("one", () => n + 1);
        await ctx.step.sleep("nap", 20);
        return await ctx.step.invoke("child", echo, one);
      },
    });
    const worker = serve([echo, walk, flow], { url, logger: silent });
    await worker.ready;
    const runs = [await direct.start(echo, 1), await direct.start(walk, {}), await direct.start(flow, 5)];
    expect(await direct.result(runs[0]!.runId)).toBe(2);
    expect(await direct.result(runs[1]!.runId)).toBe("walked");
    expect(await direct.result(runs[2]!.runId)).toBe(7);
    await worker.stop();
  });
});
