/**
 * Polling: asks another system for a report and polls until it is ready, with backoff and a limit.
 * The step names contain the index of the poll, since each name may be used once. Between two polls
 * the run is only a row in Postgres.
 */

import { createServer } from "node:http";
import { connect, serve, workflow } from "pawl";

interface Report {
  status: "working" | "ready";
  file?: string;
}

const report = workflow({
  name: "report",
  run: async ({ runId, step }, input: { api: string; month: string }) => {
    const url = `${input.api}/reports/${input.month}`;
    // The run's id as idempotency key: a crash after the request does not order a second report.
    await step.run("order", async ({ signal }) => {
      await call(url, { method: "PUT", headers: { "Idempotency-Key": runId }, signal });
    });
    for (let poll = 0; poll < 20; poll++) {
      await step.sleep(`wait-${poll}`, Math.min(50 * 2 ** poll, 1_000)); // minutes in production
      const { status, file } = await step.run(`poll-${poll}`, ({ signal }) => call(url, { signal }));
      if (status === "ready") return { file, polls: poll + 1 };
    }
    throw new Error(`the report of ${input.month} is not ready after 20 polls`);
  },
});

/** An answer that is not 2xx is an error, and so an attempt of the step that failed. */
async function call(url: string, options: RequestInit): Promise<Report> {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as Report;
}

// The other system: the report is ready at the third poll.
let polls = 0;
const api = createServer((request, response) => {
  if (request.method === "GET") polls++;
  console.log(request.method, request.url);
  const answer: Report = polls < 3 ? { status: "working" } : { status: "ready", file: "july.csv" };
  response.setHeader("Connection", "close").end(JSON.stringify(answer));
});
await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
const { port } = api.address() as { port: number };

const worker = serve([report]);
const pawl = connect();
const { runId } = await pawl.start(report, { api: `http://127.0.0.1:${port}`, month: "july" });
console.log(await pawl.result(runId));
await worker.stop();
await pawl.close();
api.close();
