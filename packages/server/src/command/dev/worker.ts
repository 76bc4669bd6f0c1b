/**
 * The worker of `pawl dev`. It is a process of its own, so that a changed file starts with fresh
 * modules. It loads the definitions of a file, reports that, and serves them when its parent says
 * so. It stops when its parent says so, or ends. Started by `watch.ts`.
 */

import { createRequire, register } from "node:module";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import type { Worker } from "pawl";
import { loadDefinitions } from "./load-definitions.js";
import type { FromWorker, ToWorker } from "./watch.js";
import { describeFailure } from "../terminal/failure.js";

const [file = "", schema] = process.argv.slice(2);
const report = (message: FromWorker, then: () => void = () => {}): void =>
  void process.send?.(message, undefined, undefined, then);

// Ctrl-C reaches every process of the terminal; the parent decides what it means.
process.on("SIGINT", () => {});

let worker: Worker | undefined;
const stop = async (): Promise<void> => {
  await worker?.stop();
  process.exit(0);
};
process.once("disconnect", () => void stop());

const loadedFiles = watchLoading();
try {
  const { definitions, pawl } = await loadDefinitions(file);
  process.on("message", (message: ToWorker) => {
    if (message === "stop") return void stop();
    worker = pawl.serve(definitions, { schema });
    worker.ready.then(
      () => report({ kind: "ready" }),
      (error: unknown) => report({ kind: "broken", text: describeFailure(error), files: loadedFiles() }),
    );
  });
  report({
    kind: "loaded",
    serves: definitions.map(({ name, version }) => `${name}@${version}`),
    files: loadedFiles(),
  });
} catch (error) {
  report({ kind: "broken", text: describeFailure(error), files: loadedFiles() }, () => process.exit(1));
}

/**
 * Returns a function that lists the files loaded so far: ES modules by a hook, CommonJS by its
 * cache.
 */
function watchLoading(): () => string[] {
  const { port1: received, port2: sent } = new MessageChannel();
  received.unref();
  register("./loaded-files.js", { parentURL: import.meta.url, data: sent, transferList: [sent] });
  const files = new Set<string>([file]);
  return () => {
    for (let message; (message = receiveMessageOnPort(received)) !== undefined;)
      files.add(String(message.message));
    for (const path of Object.keys(createRequire(import.meta.url).cache)) files.add(path);
    return [...files].filter((path) => !path.includes("node_modules"));
  };
}
