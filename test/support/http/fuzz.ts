/** Sends requests at random to a server for a while, many at a time, and tells what came of them. */

import { Agent, request as send } from "node:http";
import fc from "fast-check";
import { type ApiDocument, operationsOf } from "./openapi.js";
import { type FuzzRequest, requestsOf } from "./requests-of.js";

export interface FuzzOptions {
  readonly url: string;
  readonly seed: number;
  readonly durationMs: number;
  /** The id of a run that exists. */
  readonly runId: string;
  readonly concurrency?: number;
}

export interface FuzzReport {
  readonly requests: number;
  /** How often each status came. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Which operations were answered with a 2xx at least once. */
  readonly succeeded: ReadonlySet<string>;
  /** Requests that were answered with 500 or more, or not at all. */
  readonly failures: readonly { readonly request: FuzzRequest; readonly answer: string }[];
}

/** Of one operation after the other. */
const batch = 10;
const longestMs = 20_000;

export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { url, seed, durationMs, runId, concurrency = 16 } = options;
  const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as ApiDocument;
  const operations = operationsOf(document).filter(({ path }) => path.startsWith("/v1/"));
  const made = operations.map((operation) => ({
    id: operation.operation.operationId,
    requests: requestsOf(operation),
  }));
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const statuses: Record<number, number> = {};
  const succeeded = new Set<string>();
  const failures: { request: FuzzRequest; answer: string }[] = [];
  const untilMs = performance.now() + durationMs;
  let requests = 0;
  let round = 0;

  const lane = async (): Promise<void> => {
    // Every operation once, however long that takes.
    while (performance.now() < untilMs || round < made.length) {
      const turn = round++;
      const { id, requests: arbitrary } = made[turn % made.length]!;
      for (const drawn of fc.sample(arbitrary, { seed: seed + turn, numRuns: batch })) {
        const request = withRun(drawn, runId);
        const { status, text } = await ask(url, agent, request);
        requests++;
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status >= 200 && status < 300) succeeded.add(id);
        if (status >= 500 || status === 0)
          failures.push({ request, answer: `${status} ${text.slice(0, 500)}` });
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  agent.destroy();
  return { requests, statuses, succeeded, failures };
}

function withRun(request: FuzzRequest, runId: string): FuzzRequest {
  return {
    ...request,
    path: request.path.replaceAll("RUN", runId),
    body: request.body?.replaceAll('"RUN"', `"${runId}"`),
  };
}

/** The answer; status 0 if there is none. */
function ask(url: string, agent: Agent, request: FuzzRequest): Promise<{ status: number; text: string }> {
  const { method, path, headers, body } = request;
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const sent = send(
      url + path,
      { method, agent, headers: { ...headers, ...length }, timeout: longestMs },
      (answer) => {
        if (answer.headers["content-type"]?.startsWith("text/event-stream")) {
          // A stream of events does not end by itself.
          resolve({ status: answer.statusCode ?? 0, text: "" });
          answer.destroy();
          return;
        }
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => (text += part));
        answer.once("end", () => resolve({ status: answer.statusCode ?? 0, text }));
        answer.once("error", (error) => resolve({ status: 0, text: error.message }));
      },
    );
    sent.once("error", (error) => resolve({ status: 0, text: error.message }));
    sent.once("timeout", () => sent.destroy(new Error(`no answer in ${longestMs} ms`)));
    sent.end(body);
  });
}
