/**
 * `queues`: how many messages per second are sent, received and acknowledged, at the same time and
 * in batches of ten: by the library on Postgres, by the library through a server in its own
 * process, and by plain requests to that server.
 */

import { connect, type Message, type Pawl } from "pawl";
import type { Bench, BenchRequest, Figure } from "./bench.js";
import { costs, rate } from "./figures.js";
import { type HttpConnection, openConnection } from "./http-connection.js";
import { startServer } from "./start-server.js";
import { countUsage } from "./usage.js";

const batch = 10;
const warmUp = 5_000;
const items = Array.from({ length: batch }, (_, n) => ({ body: { order: n, item: "ratchet", euros: 25 } }));
const waitMs = 200;

/** A way to a queue, for one sender and one receiver. */
interface Way {
  send(): Promise<unknown>;
  /** Receives up to a batch, acknowledges it, and answers how many that were. */
  receive(): Promise<number>;
}

export const queues: Bench = {
  defaults: { count: 50_000, quickCount: 5_000, concurrency: 16 },
  async measure(request: BenchRequest): Promise<Figure[]> {
    const library = connect(request.database.url);
    const direct = await measure(request, "library", "straight to Postgres", async (queue) =>
      byLibrary(library, queue),
    );
    await library.close();
    const server = await startServer(request.database.url, request.signal);
    const serverCpuMs = async (): Promise<number> => (await server.usage()).cpuMs;
    const client = connect(server.url);
    const connections: HttpConnection[] = [];
    try {
      const remote = await measure(
        request,
        "remote",
        "by the library, through a server",
        async (queue) => byLibrary(client, queue),
        serverCpuMs,
      );
      const plain = await measure(
        request,
        "server",
        "by requests to a server",
        async (queue) => {
          const [one, other] = [await openConnection(server.url), await openConnection(server.url)];
          connections.push(one, other);
          return byRequests(one, other, queue);
        },
        serverCpuMs,
      );
      return [...direct, ...remote, ...plain];
    } finally {
      await client.close();
      for (const connection of connections) connection.end();
      server.stop();
    }
  },
};

function byLibrary(pawl: Pawl, queue: string): Way {
  return {
    send: () => pawl.queues.sendMany(queue, items),
    receive: async () => {
      const messages = await pawl.queues.receive(queue, { max: batch, wait: waitMs });
      return messages.length === 0 ? 0 : (await pawl.queues.ack(queue, messages)).acked;
    },
  };
}

function byRequests(sender: HttpConnection, receiver: HttpConnection, queue: string): Way {
  const path = `/v1/queues/${queue}`;
  const [sent, wanted] = [JSON.stringify(items), JSON.stringify({ max: batch, waitSeconds: waitMs / 1_000 })];
  return {
    send: () => sender.post(`${path}/messages`, sent),
    receive: async () => {
      const { messages } = JSON.parse(await receiver.post(`${path}/receive`, wanted)) as {
        messages: Message[];
      };
      if (messages.length === 0) return 0;
      const receipts = messages.map(({ id, receipt }) => ({ id, receipt }));
      const answer = await receiver.post(`${path}/ack`, JSON.stringify({ messages: receipts }));
      return (JSON.parse(answer) as { acked: number }).acked;
    },
  };
}

async function measure(
  { database, count, concurrency, profiling }: BenchRequest,
  key: "library" | "remote" | "server",
  label: string,
  open: (queue: string) => Promise<Way>,
  serverCpuMs?: () => Promise<number>,
): Promise<Figure[]> {
  const waysTo = (queue: string): Promise<Way[]> =>
    Promise.all(Array.from({ length: concurrency }, () => open(queue)));
  await flow(await waysTo(`warm-${key}`), warmUp);
  const ways = await waysTo(`bench-${key}`);
  const used = await countUsage(database);
  const [serverBefore, before] = [(await serverCpuMs?.()) ?? 0, process.cpuUsage()];
  const beganMs = performance.now();
  await profiling.client(key, () => flow(ways, count));
  const seconds = (performance.now() - beganMs) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const serverMs = ((await serverCpuMs?.()) ?? 0) - serverBefore;
  return [
    {
      ...rate(`${key}_messages_per_s`, `${label}: sent, received and acked`, count, seconds),
      ofLimit: false,
    },
    ...costs(key, "message", await used(), count),
    cpu(`${key}_client_cpu_us`, `${key}: client CPU per message`, (user + system) / 1_000, count),
    ...(serverCpuMs === undefined
      ? []
      : [cpu(`${key}_server_cpu_us`, `${key}: the server's CPU per message`, serverMs, count)]),
  ];
}

function cpu(key: string, label: string, cpuMs: number, count: number): Figure {
  return { key, label, value: (cpuMs * 1_000) / count, unit: "µs" };
}

/** All senders and receivers at the same time, until every message was acknowledged. */
async function flow(ways: readonly Way[], count: number): Promise<void> {
  let toSend = count;
  let toAck = count;
  const send = async (way: Way): Promise<void> => {
    while (toSend > 0) {
      toSend -= batch;
      await way.send();
    }
  };
  const receive = async (way: Way): Promise<void> => {
    while (toAck > 0) {
      const acked = await way.receive();
      toAck -= acked;
    }
  };
  await Promise.all(ways.flatMap((way) => [send(way), receive(way)]));
}
