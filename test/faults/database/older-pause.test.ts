import { pathToFileURL } from "node:url";
import { connect } from "pawl";
import type * as Pawl from "pawl";
import { expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";
import { unpackOlderRelease } from "./older-release.js";

const older = await unpackOlderRelease();
const { machine, serve } = (await import(
  pathToFileURL(`${older.package}/dist/index.js`).href
)) as typeof Pawl;
const { url } = await testDatabase();

it("a worker of an older release begins no further step of a run that is paused, and repeats none", async () => {
  const pawl = connect(url);
  const called: string[] = [];
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const stepping = machine({
    name: "stepping",
    initial: "first",
    steps: {
      first: async (ctx) => {
        called.push("first");
        await gate;
        return ctx.next("second", {});
      },
      second: (ctx) => {
        called.push("second");
        return ctx.done(null);
      },
    },
  });
  const worker = serve([stepping], { url });
  try {
    const { runId } = await pawl.start("stepping", {});
    await until("the first step runs", () => called.length === 1);
    await pawl.runs.pause(runId);
    open();
    await until("its claim has ended", async () => (await pawl.runs.get(runId)).phase === "runnable");
    await pawl.runs.resume(runId);
    await pawl.result(runId);
    expect(called).toEqual(["first", "second"]);
  } finally {
    await worker.stop();
    await pawl.close();
  }
});
