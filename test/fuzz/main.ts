/**
 * `npm run fuzz -- [--seconds 60] [--seed n]`: requests at random, made of the OpenAPI document, against a server that is a process of
 * its own on a throw-away Postgres. Prints what it answered; ends with 1 if anything was 500 or more, or the server has ended.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { startLocalPostgres } from "@pawl/local-postgres";
import { connect, migrate } from "pawl";
import { firstMessage } from "../support/first-message.js";
import { fuzz } from "../support/http/fuzz.js";

const { values } = parseArgs({ options: { seconds: { type: "string" }, seed: { type: "string" } } });
const seconds = Number(values.seconds ?? "60");
if (!(seconds > 0)) throw new Error(`--seconds takes a number above 0, not ${values.seconds}`);
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e6));

const postgres = await startLocalPostgres();
const child = fork(new URL("server.js", import.meta.url), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
const probe = fork(new URL("probe.js", import.meta.url));
try {
  await migrate({ url: postgres.url });
  const pawl = connect(postgres.url);
  const { runId } = await pawl.start("fuzz", { a: { b: 1 } });
  await pawl.close();
  child.send(postgres.url);
  const url = await firstMessage<string>(child);
  probe.send(url);
  const report = await fuzz({ url, seed, durationMs: seconds * 1_000, runId });
  probe.kill("SIGTERM");
  const [timesMs] = (await once(probe, "message")) as [number[]];
  const probes = timesMs.toSorted((one, other) => one - other);
  const percentile = (share: number): string =>
    (probes[Math.floor((probes.length - 1) * share)] ?? 0).toFixed(1);
  console.log(`seed ${seed}: ${report.requests} requests in ${seconds} s, answered with`, report.statuses);
  console.log(`operations that succeeded at least once: ${report.succeeded.size}`);
  console.log(`healthy probe: p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms of ${probes.length}`);
  for (const failure of report.failures.slice(0, 20)) console.log(JSON.stringify(failure));
  const isGone = child.exitCode !== null || child.signalCode !== null;
  console.log(`${report.failures.length} failures; the server ${isGone ? "has ended" : "lives"}`);
  if (report.failures.length > 0 || isGone) process.exitCode = 1;
} finally {
  child.kill("SIGKILL");
  probe.kill("SIGKILL");
  await postgres.stop();
}
