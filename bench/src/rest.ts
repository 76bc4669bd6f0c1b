/**
 * `server`: how many runs per second start over HTTP, one request each, by name, and how long one
 * takes; then the memory that a thousand long polls use in the server. The server is its own
 * process, this process is the client, and Postgres runs beside them.
 */

import { Agent, get } from "node:http";
import { connect, serve } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { input, noOpJob } from "./definitions.js";
import { costs, limitFigure, percentiles, rate } from "./figures.js";
import { openConnection } from "./http-connection.js";
import { besideLimit } from "./raw-limit.js";
import { type ServerProcess, startServer } from "./start-server.js";
import { countUsage } from "./usage.js";

const warmUp = 1_000;
const longPolls = 1_000;
const body = JSON.stringify({ input });

export const restStarts: Bench = {
  defaults: { count: 50_000, quickCount: 5_000, concurrency: 128 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const { count } = request;
    const { limit, result } = await besideLimit(request.database.observer, request.quick, () =>
      startAll(request),
    );
    return [
      rate("started_per_s", "started, one request each", count, result.seconds),
      limitFigure(limit),
      ...percentiles("start_", "request to answer", result.tookMs),
      ...costs("", "run", result.usage, count),
      {
        key: "server_cpu_us_per_run",
        label: "server CPU per run",
        value: (result.serverCpuMs * 1_000) / count,
        unit: "µs",
      },
      {
        key: "client_cpu_us_per_run",
        label: "client CPU per run",
        value: (result.clientCpuMs * 1_000) / count,
        unit: "µs",
      },
      {
        key: "held_memory_mb",
        label: `server memory with ${longPolls} long polls`,
        value: result.heldBytes / 2 ** 20,
        unit: "MiB",
      },
    ];
  },
};

async function startAll({ database, count, concurrency, profiling, signal }: BenchRequest) {
  const definition = noOpJob();
  // Registered, as in production, but no worker claims the runs.
  const worker = serve([definition], { url: database.url });
  await worker.ready;
  await worker.stop();
  const server = await startServer(database.url, signal);
  const path = `/v1/workflows/${definition.name}/runs`;
  try {
    await startMany(server.url, path, warmUp, concurrency);
    const used = await countUsage(database);
    const [before, own] = [await server.usage(), process.cpuUsage()];
    const beganMs = performance.now();
    const tookMs = await profiling.server("starts", database, () =>
      profiling.client("starts", () => startMany(server.url, path, count, concurrency)),
    );
    const seconds = (performance.now() - beganMs) / 1_000;
    const { user, system } = process.cpuUsage(own);
    const serverCpuMs = (await server.usage()).cpuMs - before.cpuMs;
    const usage = await used();
    const heldBytes = await holdPolls(database.url, server);
    return { seconds, tookMs, usage, serverCpuMs, clientCpuMs: (user + system) / 1_000, heldBytes };
  } finally {
    server.stop();
  }
}

/**
 * Starts so many runs, one request after the other on each connection, and answers how long each
 * took.
 */
async function startMany(url: string, path: string, count: number, connections: number): Promise<number[]> {
  const tookMs: number[] = [];
  let left = count;
  const lane = async (): Promise<void> => {
    const connection = await openConnection(url);
    try {
      while (left-- > 0) {
        const beganMs = performance.now();
        await connection.post(path, body);
        tookMs.push(performance.now() - beganMs);
      }
    } finally {
      connection.end();
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  return tookMs;
}

/** The memory of the server while all these calls wait for runs that never end. */
async function holdPolls(database: string, server: ServerProcess): Promise<number> {
  const pawl = connect(database);
  const started = await pawl.startMany(
    "bench-never",
    Array.from({ length: longPolls }, () => ({ input: null })),
  );
  await pawl.close();
  const agent = new Agent({ keepAlive: true, maxSockets: longPolls });
  let connected = 0;
  const polls = started.map(({ runId }) => {
    const sent = get(`${server.url}/v1/runs/${runId}?waitSeconds=30`, { agent });
    sent.once("socket", (socket) => socket.once("connect", () => connected++));
    sent.on("error", () => {});
    return sent;
  });
  while (connected < longPolls) await new Promise((resolve) => setTimeout(resolve, 10));
  // A while in which they are looked after.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const { memoryBytes } = await server.usage();
  for (const poll of polls) poll.destroy();
  agent.destroy();
  return memoryBytes;
}
