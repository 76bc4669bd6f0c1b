/**
 * The demo: `npm run demo`. A worker in its own process executes a machine of four steps. The demo
 * kills that process in the middle of the second step and starts another, which continues the run.
 * The demo also plays the outside world, so it can count the real requests. It fails if Pawl did
 * not keep its promise, and always cleans up. In a terminal, or with `--stay`, it ends with a link to
 * the run in the dashboard, which stays open until Ctrl-C.
 */

import { styleText } from "node:util";
import { startLocalPostgres } from "@pawl/local-postgres";
import { createServer } from "@pawl/server";
import { connect, migrate } from "pawl";
import { WorkerProcess } from "./demo-process.js";
import { OutsideWorld } from "./demo-world.js";
import { order } from "./order.js";

const steps = ["reserve", "charge", "pack", "ship"];
/** Whether somebody is there to look at the dashboard. */
const stays = process.argv.includes("--stay") || (process.stdin.isTTY && process.stdout.isTTY);

/** Clean-up functions, always called in reverse order. */
const cleanups: (() => Promise<void>)[] = [];
let isInterrupted = false;
const beganAtMs = performance.now();

/** Returns the link to the run in the dashboard; null: nobody is there to follow it. */
async function demo(): Promise<string | null> {
  say("Pawl: a worker is killed in the middle of a run, and another one goes on.");

  heading("1. Postgres");
  const postgres = await startLocalPostgres();
  cleanups.push(() => postgres.stop());
  await migrate({ url: postgres.url });
  const pawl = connect(postgres.url);
  cleanups.push(() => pawl.close());
  say(`   A throw-away server runs as process ${postgres.pid}. Everything durable is in its schema "pawl".`);

  heading("2. Worker A takes an order");
  const world = new OutsideWorld(pawl, say);
  const workerA = await startWorker("A", postgres.url, world);
  const { runId } = await pawl.start(order, { item: "ratchet", euros: 25 });
  say(`   client    started run ${runId}: ${order.name}, to reserve, charge, pack and ship`);
  await orFailure(world.moneyTaken, workerA);

  heading(`3. kill -9 ${workerA.pid}`);
  await workerA.kill();
  const killedAtMs = performance.now();
  const run = await pawl.runs.get(runId);
  say(`   The money was taken, but worker A died before it heard so. What Postgres holds of run ${runId}:`);
  say(`     phase   ${run.phase}   worker A holds the claim until 2 s (the lease) after its last heartbeat`);
  say(`     step    ${run.step}      the step that was interrupted`);
  say(`     state   ${JSON.stringify(run.state)}`);
  say("             what reserve committed, and nothing of charge: its outcome is lost");

  heading("4. Worker B goes on");
  world.onRecovery = () => {
    const seconds = ((performance.now() - killedAtMs) / 1000).toFixed(1);
    say(`   ${seconds} s after the kill the run is claimed again. Reserve is not executed again, charge is:`);
  };
  const workerB = await startWorker("B", postgres.url, world);
  const output = await orFailure(pawl.result(runId, { timeout: "30s" }), workerB);
  say(`   client    has the result of run ${runId}: ${JSON.stringify(output)}`);
  await workerB.stop();
  say("   worker B  stopped gracefully");

  heading("5. What happened");
  const { status } = await pawl.runs.get(runId);
  say(`   Run ${runId} is ${status}. How often each step was executed:`);
  say("               by worker A   by worker B");
  for (const step of steps) {
    const note = step === "charge" ? "lost with A, executed again by B" : "";
    say(
      `     ${step.padEnd(10)}${world.count(step, "A")}${" ".repeat(13)}${world.count(step, "B")}   ${note}`.trimEnd(),
    );
  }
  say(`   Payments taken: ${world.payments}`);
  say("   A step is executed at least once, so charge asked for the money twice. Both requests had the");
  say("   same key, made of the run and the step, and the provider took the money once.");

  const counts = steps.map((step) => `${world.count(step, "A")}+${world.count(step, "B")}`).join(" ");
  expect(status === "completed", "the run is completed");
  expect(counts === "1+0 1+1 0+1 0+1", "only the interrupted step is executed again");
  expect(world.payments === 1, "the money is taken once");

  if (!stays) return null;
  const server = await createServer({ database: postgres.url, port: 0 });
  cleanups.push(() => server.close());
  return `${await server.listen()}/runs/${runId}`;
}

async function startWorker(name: string, url: string, world: OutsideWorld): Promise<WorkerProcess> {
  const worker = new WorkerProcess(url, {
    onRequest: (request) => world.answer(name, request),
    onLog: (message) => say(`   worker ${name}  logs "${message}"`),
  });
  cleanups.push(() => worker.kill());
  await orFailure(worker.ready, worker);
  say(`   worker ${name}  serves "${order.name}" as process ${worker.pid}`);
  return worker;
}

/** Waits for a promise, unless the worker that it needs ends. */
function orFailure<Value>(awaited: Promise<Value>, worker: WorkerProcess): Promise<Value> {
  return Promise.race([awaited, worker.failed]);
}

function expect(holds: boolean, law: string): void {
  if (!holds) throw new Error(`the promise "${law}" was not kept`);
}

function heading(text: string): void {
  const isPlain = !process.stdout.isTTY || process.env["NO_COLOR"] !== undefined;
  say(`\n${isPlain ? text : styleText("bold", text)}`);
}

function say(line: string): void {
  if (!isInterrupted) console.log(line);
}

const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      isInterrupted = true;
      reject(new Error(`interrupted by ${signal}`));
    });
  }
});

try {
  const link = await Promise.race([demo(), interrupted]);
  say(
    `\nDone in ${((performance.now() - beganAtMs) / 1000).toFixed(1)} s. The code: examples/src/order.ts and demo.ts.`,
  );
  if (link !== null) {
    say(`See the run in the dashboard until you press Ctrl-C: ${link}`);
    await interrupted.catch(() => {});
  }
} catch (error) {
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup().catch(() => {});
}
// Open waits of an interrupted demo end with the process.
process.exit();
