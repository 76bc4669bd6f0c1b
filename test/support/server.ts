/** A server on a database, listening on a free port, and calls of it as a program of any language would make them. */

import { createServer, type PawlServer, type ServerOptions } from "@pawl/server";
import { afterAll } from "vitest";

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body as JSON; undefined if there is none. */
  readonly body: unknown;
}

export interface TestServer {
  readonly server: PawlServer;
  readonly url: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

/** Makes the server; call it at the top of a test file. Closed when the file ends. */
export async function testServer(options: ServerOptions): Promise<TestServer> {
  const server = await createServer({ port: 0, ...options });
  afterAll(() => server.close());
  const url = await server.listen();
  return {
    server,
    url,
    call: async (method, path, body, headers = {}) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const typed = body === undefined ? {} : { "content-type": "application/json" };
      const answer = await fetch(url + path, { method, ...sent, headers: { ...typed, ...headers } });
      // A stream does not end by itself.
      const isStream = answer.headers.get("content-type") === "text/event-stream";
      if (isStream) await answer.body?.cancel();
      const text = isStream ? "" : await answer.text();
      return {
        status: answer.status,
        headers: answer.headers,
        body:
          text === ""
            ? undefined
            : /json/.test(answer.headers.get("content-type") ?? "json")
              ? JSON.parse(text)
              : text,
      };
    },
  };
}
