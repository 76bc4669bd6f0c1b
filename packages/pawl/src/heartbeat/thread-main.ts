/**
 * The program of the heartbeat thread: it does what `thread-host.ts` commands. At run time it is a
 * text (`generated/heartbeat-thread.js`) with everything that it imports, so no bundler can lose it.
 */

import { parentPort } from "node:worker_threads";
import { beatAll, type Command, type Message } from "./thread.js";

const port = parentPort!;
const execute = beatAll((message) => port.postMessage(message));
port.on("message", (command: Command) => {
  void execute(command).then(() => {
    if (command.kind === "stop") port.postMessage({ kind: "stopped" } satisfies Message);
  });
});
port.postMessage({ kind: "ready" } satisfies Message);
