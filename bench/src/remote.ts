/**
 * `remote`: everything through a server; server, client and worker are separate processes. Measures
 * the time from the call of `start` to the step and to the result, while runs trickle in; the time
 * from the commit of the start to the step; machine steps committed per second and runs started per
 * second meanwhile; and the cost of a thousand waiting workers for the server.
 */

import { connect, type Pawl } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import {
  clockedJob,
  input,
  machineMs,
  noOpJob,
  plain,
  stepsPerMachine,
  tenStepMachine,
} from "./definitions.js";
import { commitFigure, percentiles } from "./figures.js";
import { besideLimit } from "./raw-limit.js";
import { type ServerProcess, startServer } from "./start-server.js";
import { startWorker } from "./worker-process.js";

const meanGapMs = 20;
const warmUpRuns = 100;
const pollers = 1_000;
const machineConcurrency = 500;
const startsAtOnce = 200;

export const remote: Bench = {
  defaults: { count: 1_000, quickCount: 200, concurrency: 10 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { limit, result } = await besideLimit(request.database.observer, request.quick, () => all(request));
    return [...result, commitFigure(limit)];
  },
};

async function all(request: BenchRequest): Promise<Figure[]> {
  const server = await startServer(request.database.url, request.signal);
  const pawl = connect(server.url);
  try {
    const idleBytes = (await server.usage()).memoryBytes;
    return [
      ...(await trickle(request, pawl, server.url)),
      ...(await drain(request, pawl, server.url)),
      ...(await starts(request, pawl)),
      ...(await poll(server, idleBytes)),
    ];
  } finally {
    await pawl.close();
    server.stop();
  }
}

async function trickle(request: BenchRequest, pawl: Pawl, url: string): Promise<Figure[]> {
  const { database, count, concurrency, signal } = request;
  const expected = Number.MAX_SAFE_INTEGER;
  const profilePath = undefined;
  const options = { url };
  const worker = {
    database,
    definition: "clocked",
    concurrency,
    expected,
    profilePath,
    options,
    signal,
  } as const;
  const { stop } = await startWorker(worker);
  const definition = clockedJob();
  const startedMs: number[] = [];
  const pickedUpMs: number[] = [];
  const enteredMs: number[] = [];
  const endedMs: number[] = [];
  const one = async (isCounted: boolean): Promise<void> => {
    const beginMs = machineMs();
    const { runId } = await pawl.start(definition, input);
    const committedMs = machineMs();
    const { enteredMs: entered } = await pawl.result(runId, { timeout: "30s" });
    if (!isCounted) return;
    startedMs.push(committedMs - beginMs);
    pickedUpMs.push(Math.max(0, entered - committedMs));
    enteredMs.push(entered - beginMs);
    endedMs.push(machineMs() - beginMs);
  };
  try {
    const runs: Promise<void>[] = [];
    for (let run = 0; run < warmUpRuns + count; run++) {
      signal.throwIfAborted();
      runs.push(one(run >= warmUpRuns));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 * meanGapMs));
    }
    await Promise.all(runs);
  } finally {
    await stop();
  }
  return [
    ...percentiles("started_", "start answered", startedMs),
    ...percentiles("picked_up_", "start answered to step entered", pickedUpMs),
    ...percentiles("entered_", "start to step entered", enteredMs),
    ...percentiles("result_", "start to result", endedMs),
  ];
}

/** The worker comes when all machines are there. */
async function drain(request: BenchRequest, pawl: Pawl, url: string): Promise<Figure[]> {
  const { database, quick, signal } = request;
  const machines = quick ? 500 : 5_000;
  await pawl.startMany(tenStepMachine(), Array.from({ length: machines }, plain));
  const worker = await startWorker({
    database,
    definition: "machine",
    concurrency: machineConcurrency,
    expected: machines,
    profilePath: undefined,
    options: { url },
    signal,
  });
  const beganMs = performance.now();
  await worker.executed;
  const seconds = (performance.now() - beganMs) / 1_000;
  await worker.stop();
  return [
    {
      key: "steps_per_s",
      label: "steps of machines committed",
      value: (machines * stepsPerMachine) / seconds,
      unit: "/s",
    },
  ];
}

async function starts({ quick }: BenchRequest, pawl: Pawl): Promise<Figure[]> {
  const count = quick ? 2_000 : 20_000;
  const definition = noOpJob();
  const beganMs = performance.now();
  let left = count;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await pawl.start(definition, input);
  };
  await Promise.all(Array.from({ length: startsAtOnce }, caller));
  const seconds = (performance.now() - beganMs) / 1_000;
  return [
    {
      key: "starts_per_s",
      label: `starts, ${startsAtOnce} callers of one client`,
      value: count / seconds,
      unit: "/s",
    },
  ];
}

/** So many claims that wait at once, on a queue that stays empty. */
async function poll(server: ServerProcess, idleBytes: number): Promise<Figure[]> {
  const workerId = "bench-poller";
  const queue = "empty";
  const definition = { name: "poller", version: 1 };
  const post = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${server.url}/v1/workers/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  const definitions = [{ ...definition, kind: "job", queue, priority: 0, retentionMs: 1_000 }];
  await post("register", { workerId, leaseMs: 600_000, queues: [queue], info: {}, definitions });
  const ending = new AbortController();
  const before = (await server.usage()).memoryBytes;
  const claims = Array.from({ length: pollers }, (_, index) => {
    const claimId = String(index + 1);
    const ask = { workerId, claimId, queue, limit: 1, definitions: [definition], waitSeconds: 30 };
    return post("claim", ask, ending.signal).catch(() => {});
  });
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const during = (await server.usage()).memoryBytes;
  ending.abort();
  await Promise.all(claims);
  const toMegabytes = (bytes: number): number => bytes / 1_000_000;
  return [
    {
      key: "idle_rss_mb",
      label: "server: memory at the beginning",
      value: toMegabytes(idleBytes),
      unit: "MB",
    },
    { key: "before_rss_mb", label: "server: memory after the work", value: toMegabytes(before), unit: "MB" },
    {
      key: "polls_rss_mb",
      label: `server: memory with ${pollers} claims that wait`,
      value: toMegabytes(during),
      unit: "MB",
    },
  ];
}
