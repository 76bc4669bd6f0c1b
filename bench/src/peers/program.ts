/**
 * Runs the program of a contestant as a separate process, on the Node.js that npm ships with the
 * peers, with one order, and returns its answer. It kills the process after the answer, on timeout,
 * or when the bench is interrupted.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Answer, Order } from "./protocol.js";

export const peersDirectory = fileURLToPath(new URL("../../peers/", import.meta.url));
export const nodePath = `${peersDirectory}node_modules/node/bin/node`;
/** How much of a program's output is kept, to explain a failure. */
const longestNoise = 2_000;

export async function runProgram(
  name: string,
  order: Order,
  longestMs: number,
  interrupted: AbortSignal,
): Promise<Exclude<Answer, { kind: "failed" }>> {
  interrupted.throwIfAborted();
  const child = fork(`${peersDirectory}src/${name}.ts`, {
    execPath: nodePath,
    execArgv: ["--disable-warning=ExperimentalWarning"],
    cwd: peersDirectory,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: { ...process.env, NODE_ENV: "production" },
  });
  const noise = listen(child);
  const timer = setTimeout(() => child.kill("SIGKILL"), longestMs);
  const interrupt = (): void => void child.kill("SIGKILL");
  interrupted.addEventListener("abort", interrupt);
  try {
    const answered = answer(child);
    child.send(order);
    const message = await answered;
    if (message === undefined) {
      interrupted.throwIfAborted();
      throw new Error(child.signalCode === "SIGKILL" ? `not done after ${longestMs / 1_000} s` : noise());
    }
    if (message.kind === "failed") throw new Error(message.message);
    return message;
  } finally {
    clearTimeout(timer);
    interrupted.removeEventListener("abort", interrupt);
    await kill(child);
  }
}

/** Undefined: the process ended without an answer. */
function answer(child: ChildProcess): Promise<Answer | undefined> {
  return new Promise((resolve, reject) => {
    child.once("message", (message: Answer) => resolve(message));
    child.once("exit", () => resolve(undefined));
    child.once("error", reject);
  });
}

function listen(child: ChildProcess): () => string {
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-longestNoise)));
  }
  return () => (said.trim() === "" ? "the process ended without an answer" : said.trim());
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
