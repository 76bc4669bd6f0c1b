/**
 * A program of a user, in one file that every bundler and runtime gets: it migrates, serves, starts a
 * run and awaits its result. It prints one line of JSON when the run is done, and stops when its input
 * ends. The tests of this folder build and start it.
 */

import { connect, job, migrate, serve } from "pawl";

const url = process.env["APP_DATABASE"]!;
const greet = job({ name: "greet", run: (_ctx, input: { name: string }) => `hello ${input.name}` });

async function main(): Promise<void> {
  await migrate({ url });
  const logged: string[] = [];
  const log = (...given: unknown[]): void => void logged.push(given.map(String).join(" "));
  const logger = { debug() {}, info() {}, warn: log, error: log };
  const worker = serve([greet], { url, lease: "5m", heartbeat: "50ms", logger });
  await worker.ready;
  const pawl = connect(url, { logger });
  const { runId } = await pawl.start(greet, { name: "bundle" });
  const result = await pawl.result(runId);
  console.log(JSON.stringify({ result, logged }));
  process.stdin.resume().once("end", () => {
    void Promise.all([worker.stop(), pawl.close()]);
  });
}

void main();
