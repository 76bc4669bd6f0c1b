/** The server that the laws go through when they are run over HTTP (the project "http"), one for each test file. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { requireBuild } from "../built.js";

export interface TestServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Whether the laws of this process are those of the HTTP transport. */
export const isOverHttp = process.env["PAWL_TEST_TRANSPORT"] === "http";

export async function startTestServer(database: string): Promise<TestServer> {
  requireBuild();
  const thread = new Worker(new URL("../../dist/support/setup/server-thread.js", import.meta.url), {
    workerData: database,
    execArgv: [],
  });
  const [url] = (await once(thread, "message")) as [string];
  return {
    url,
    stop: async () => {
      thread.postMessage("close");
      await once(thread, "message");
      await thread.terminate();
    },
  };
}
