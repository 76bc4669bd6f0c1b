/**
 * Starts a Pawl server as a separate process (`server-process.ts`), for the benches that go through
 * one.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { ServerOrder, ServerReport } from "./server-process.js";

export interface ServerProcess {
  readonly url: string;
  usage(): Promise<{ cpuMs: number; memoryBytes: number }>;
  stop(): void;
}

export async function startServer(database: string, signal: AbortSignal): Promise<ServerProcess> {
  const child = fork(new URL("server-process.js", import.meta.url), {
    stdio: ["ignore", process.stderr, "inherit", "ipc"],
    execArgv: ["--expose-gc"],
    signal,
    killSignal: "SIGKILL",
  });
  // Killed when the bench is interrupted; callers then get an error.
  child.on("error", () => {});
  const { url } = await ask(child, { kind: "listen", database }, "listening");
  return { url, usage: () => ask(child, { kind: "usage" }, "usage"), stop: () => void child.kill("SIGKILL") };
}

async function ask<Kind extends ServerReport["kind"]>(
  child: ChildProcess,
  order: ServerOrder,
  kind: Kind,
): Promise<Extract<ServerReport, { kind: Kind }>> {
  child.send(order);
  const ended = new AbortController();
  const failed = once(child, "exit", { signal: ended.signal }).then(() => {
    throw new Error("the server has ended");
  });
  failed.catch(() => {});
  const [report] = (await Promise.race([once(child, "message"), failed])) as [ServerReport];
  ended.abort();
  if (report.kind !== kind) throw new Error(`the server told ${report.kind} instead of ${kind}`);
  return report as Extract<ServerReport, { kind: Kind }>;
}
