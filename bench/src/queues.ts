/**
 * `queues`: how many messages per second are sent, received and acknowledged, all at once and each in batches of ten: by this process straight
 * to Postgres, and by this process through a server that is a process of its own.
 */

import { connect, type Pawl } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { costs, rate } from "./figures.js";
import { startServer } from "./start-server.js";
import { countUsage } from "./usage.js";

const batch = 10;
const warmUp = 1_000;

export const queues: Bench = {
  defaults: { count: 50_000, quickCount: 5_000, concurrency: 16 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const library = connect(request.database.url);
    const direct = await measure(request, library, "library", async () => 0);
    await library.close();
    const server = await startServer(request.database.url, request.signal);
    try {
      const client = connect(server.url);
      const through = await measure(request, client, "server", async () => (await server.usage()).cpuMs);
      await client.close();
      return [...direct, ...through];
    } finally {
      server.stop();
    }
  },
};

async function measure(
  { database, count, concurrency, profiling }: BenchRequest,
  pawl: Pawl,
  way: "library" | "server",
  serverCpuMs: () => Promise<number>,
): Promise<Figure[]> {
  await flow(pawl, `warm-${way}`, warmUp, concurrency);
  const used = await countUsage(database);
  const [serverBefore, before] = [await serverCpuMs(), process.cpuUsage()];
  const beganMs = performance.now();
  await profiling.client(way, () => flow(pawl, `bench-${way}`, count, concurrency));
  const seconds = (performance.now() - beganMs) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const serverMs = (await serverCpuMs()) - serverBefore;
  const label = way === "library" ? "straight to Postgres" : "through a server";
  return [
    {
      ...rate(`${way}_messages_per_s`, `${label}: sent, received and acked`, count, seconds),
      ofLimit: false,
    },
    ...costs(way, "message", await used(), count),
    cpu(`${way}_client_cpu_us`, `${way}: client CPU per message`, (user + system) / 1_000, count),
    ...(way === "server" ? [cpu("server_cpu_us", "server: its CPU per message", serverMs, count)] : []),
  ];
}

function cpu(key: string, label: string, cpuMs: number, count: number): Figure {
  return { key, label, value: (cpuMs * 1_000) / count, unit: "µs" };
}

/** Senders and receivers at the same time, until every message was acknowledged. */
async function flow(pawl: Pawl, queue: string, count: number, lanes: number): Promise<void> {
  let toSend = count;
  let toAck = count;
  const send = async (): Promise<void> => {
    while (toSend > 0) {
      toSend -= batch;
      const items = Array.from({ length: batch }, (_, n) => ({
        body: { order: n, item: "ratchet", euros: 25 },
      }));
      await pawl.queues.sendMany(queue, items);
    }
  };
  const receive = async (): Promise<void> => {
    while (toAck > 0) {
      const messages = await pawl.queues.receive(queue, { max: batch, wait: 200 });
      if (messages.length === 0) continue;
      const { acked } = await pawl.queues.ack(queue, messages);
      toAck -= acked;
    }
  };
  await Promise.all(Array.from({ length: lanes }, () => [send(), receive()]).flat());
}
