import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const pawl = connect(database.url);
const program = fileURLToPath(new URL("../../dist/faults/programs/sleepers.js", import.meta.url));
const worker = fork(program, {
  execArgv: ["--expose-gc"],
  env: { ...process.env, DATABASE_URL: database.url, PAWL_URL: "" },
  stdio: ["ignore", "ignore", "inherit", "ipc"],
});
afterAll(async () => {
  worker.kill("SIGKILL");
  await pawl.close();
});

it("10,000 suspended workflows leave nothing of their bodies in memory", { timeout: 90_000 }, async () => {
  await once(worker, "message");
  for (let batch = 0; batch < 10; batch++) {
    await pawl.startMany(
      "sleeper",
      Array.from({ length: 1_000 }, (_, n) => ({ input: n })),
    );
  }
  await until(
    "all are suspended",
    async () => {
      const [row] = await database.sql<{ n: number }>(
        "select count(*)::int as n from runs where name = 'sleeper' and status = 'awaiting_signal' and locked_by is null",
      );
      return row!.n === 10_000;
    },
    60_000,
  );
  worker.send("count");
  const [count] = (await once(worker, "message")) as [{ made: number; alive: number; finished: number }];
  expect(count.made).toBe(10_000);
  // The collector may see a few on the stack, or in what it last optimised.
  expect(count.alive).toBeLessThan(20);
  expect(count.finished).toBe(0);
});
