/**
 * A receiver of webhook deliveries: an HTTP server that accepts only requests that Pawl signed, and
 * handles each once. When you run it, it starts a Pawl server on your database, subscribes, and
 * publishes.
 */

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createPawlServer } from "@pawl/server";
import { connect, InvalidDelivery, verifyDelivery } from "pawl";

const secret = process.env["WEBHOOK_SECRET"] ?? `whsec_${randomBytes(32).toString("base64")}`;
/** In your program: a table with a unique column. */
const handled = new Set<string>();
let done = (): void => {};
const delivered = new Promise<void>((resolve) => (done = resolve));

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    const { id, topic, body } = await verifyDelivery(
      { headers: request.headers, body: Buffer.concat(chunks) },
      secret,
    );
    if (!handled.has(id)) {
      handled.add(id);
      console.log(topic, body);
    }
    response.writeHead(204).end(done);
  } catch (error) {
    if (!(error instanceof InvalidDelivery)) throw error;
    console.log("refused:", error.reason);
    response.writeHead(401).end();
  }
}

const receiver = createServer((request, response) => void receive(request, response));
receiver.listen(0, "127.0.0.1");
await once(receiver, "listening");
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

// Deliveries go to private addresses only if they are listed.
const server = await createPawlServer({ port: 0, allowPrivateDeliveries: ["127.0.0.1"] });
await server.listen();
const pawl = connect();
await pawl.subscriptions.create("user.*", { type: "http", url, secret });

await fetch(url, { method: "POST", body: '{ "email": "eve@example.com" }' });
await pawl.topics.publish("user.signup", { email: "ada@example.com" });
await delivered;

await pawl.close();
await server.close();
receiver.close();
