/**
 * A relay before a server that a worker in another language calls: it compares every request and every
 * answer of the worker protocol with the OpenAPI document, and loses answers when it is told to.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { type ApiDocument, operationsOf } from "./openapi.js";

export interface RelayedCalls {
  readonly url: string;
  /** What was not as the document says. */
  readonly violations: readonly unknown[];
  /** The kinds of transitions and journal entries that were sent. */
  readonly seen: ReadonlySet<string>;
  /** How many answers were lost. */
  readonly lost: number;
  close(): void;
}

interface Sent {
  readonly commits?: readonly { readonly transition: { readonly kind: string } }[];
  readonly entries?: readonly { readonly change: { readonly op: string } }[];
}

export async function relayCalls(
  target: string,
  /** A token with the scope read, for the document. */
  token: string,
  { isLost = () => false }: { isLost?: (call: string, count: number) => boolean } = {},
): Promise<RelayedCalls> {
  const schemas = await readSchemas(target, token);
  const violations: unknown[] = [];
  const seen = new Set<string>();
  const counts: Record<string, number> = {};
  let lost = 0;
  const pass = async (request: IncomingMessage, body: string, response: ServerResponse): Promise<void> => {
    const call = request.url!.replace("/v1/workers/", "");
    const sent = JSON.parse(body) as Sent;
    for (const { transition } of sent.commits ?? []) seen.add(`commit ${transition.kind}`);
    for (const { change } of sent.entries ?? []) seen.add(`record ${change.op}`);
    // Whoever has gone is gone for the server, too.
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const answer = await fetch(`${target}${request.url}`, {
      method: "POST",
      signal: gone.signal,
      headers: { "content-type": "application/json", authorization: request.headers.authorization! },
      body,
    });
    const text = await answer.text();
    const { request: wanted, answer: told } = schemas.get(call)!;
    const wrong = [...wanted.Errors(sent), ...(answer.ok ? told.Errors(JSON.parse(text)) : [])];
    if (wrong.length > 0 || !answer.ok) violations.push({ call, body, text, wrong });
    const count = (counts[call] = (counts[call] ?? 0) + 1);
    if (isLost(call, count)) {
      lost++;
      response.destroy();
      return;
    }
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type")! }).end(text);
  };
  const relay = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      pass(request, Buffer.concat(parts).toString(), response).catch((error: unknown) => {
        if (!response.destroyed) violations.push(error);
        response.destroy();
      });
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const { port } = relay.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    violations,
    seen,
    get lost() {
      return lost;
    },
    close: () => {
      relay.closeAllConnections();
      relay.close();
    },
  };
}

/** What the document says of each call of the worker protocol. */
async function readSchemas(
  target: string,
  token: string,
): Promise<ReadonlyMap<string, { request: Validator; answer: Validator }>> {
  const headers = { authorization: `Bearer ${token}` };
  const document = (await (await fetch(`${target}/v1/openapi.json`, { headers })).json()) as ApiDocument;
  return new Map(
    operationsOf(document)
      .filter(({ path }) => path.startsWith("/v1/workers/"))
      .map(({ path, operation }) => {
        const request = jsonOf(operation.requestBody?.content);
        const answer = jsonOf(operation.responses["200"]!.content);
        return [path.replace("/v1/workers/", ""), { request: Compile(request), answer: Compile(answer) }];
      }),
  );
}

function jsonOf(content: Readonly<Record<string, { readonly schema: TSchema }>> | undefined): TSchema {
  return content!["application/json"]!.schema;
}
