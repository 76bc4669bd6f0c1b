/** The workflow that moves between two processes: its second step never returns in a process that is told to hang there. */

import { job, workflow } from "pawl";

export const leaf = job({ name: "leaf", run: () => "leaf" });

export const journey = workflow({
  name: "journey",
  run: async (ctx) => {
    await ctx.step.run("first", () => 1);
    await ctx.step.run("second", async () => {
      if (process.env["HANG"] === undefined) return 2;
      process.send?.("hanging");
      return new Promise<number>(() => setInterval(() => {}, 1_000));
    });
    await ctx.step.sleep("rest", 300);
    await ctx.step.waitForEvent("go");
    await ctx.step.invoke("call", leaf, null);
    return "there";
  },
});
