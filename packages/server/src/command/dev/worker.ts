/**
 * The worker of `pawl dev`, a process of its own, so that a changed file begins with fresh modules. Loads the definitions of a file, tells so,
 * and serves them when it is told to. Ends when it is told to, or with its parent. Started by `dev-watch.ts`.
 */

import { createRequire, register } from "node:module";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import type { Worker } from "pawl";
import { loadDefinitions } from "./load-definitions.js";
import type { FromWorker, ToWorker } from "./watch.js";
import { describeFailure } from "../terminal/failure.js";

const [file = "", schema] = process.argv.slice(2);
const tell = (message: FromWorker, then: () => void = () => {}): void =>
  void process.send?.(message, undefined, undefined, then);

// Ctrl-C reaches every process of the terminal; the parent decides what it means.
process.on("SIGINT", () => {});

let worker: Worker | undefined;
const stop = async (): Promise<void> => {
  await worker?.stop();
  process.exit(0);
};
process.once("disconnect", () => void stop());

const seen = watchLoading();
try {
  const { definitions, pawl } = await loadDefinitions(file);
  process.on("message", (message: ToWorker) => {
    if (message === "stop") return void stop();
    worker = pawl.serve(definitions, { schema });
    worker.ready.then(
      () => tell({ kind: "ready" }),
      (error: unknown) => tell({ kind: "broken", text: describeFailure(error), files: seen() }),
    );
  });
  tell({
    kind: "loaded",
    serves: definitions.map(({ name, version }) => `${name}@${version}`),
    files: seen(),
  });
} catch (error) {
  tell({ kind: "broken", text: describeFailure(error), files: seen() }, () => process.exit(1));
}

/** Answers which files were loaded so far. Modules pass a hook; CommonJS keeps a list itself. */
function watchLoading(): () => string[] {
  const { port1: heard, port2: told } = new MessageChannel();
  heard.unref();
  register("./loaded-files.js", { parentURL: import.meta.url, data: told, transferList: [told] });
  const files = new Set<string>([file]);
  return () => {
    for (let message; (message = receiveMessageOnPort(heard)) !== undefined;)
      files.add(String(message.message));
    for (const path of Object.keys(createRequire(import.meta.url).cache)) files.add(path);
    return [...files].filter((path) => !path.includes("node_modules"));
  };
}
