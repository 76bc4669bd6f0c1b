/**
 * Sends one HTTP request and reads its whole answer. In Node.js it uses `node:http`, which takes a
 * third of the CPU time of `fetch`; elsewhere, also in Bun and Deno, `fetch`. It follows no
 * redirects and keeps connections open for the next request. Used by the caller.
 */

import type { ClientRequest, IncomingMessage } from "node:http";

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * How long an idle connection stays open. Shorter than servers and proxies keep it, so that we
 * close it first.
 */
const idleMs = 4_000;
/** The timeout for opening a connection, as in `fetch`. */
const connectMs = 10_000;
/** The error code after that timeout: nothing was sent. */
export const connectTimeout = "CONNECT_TIMEOUT";

/** Rejects with the error of the runtime if there is no answer or the signal is aborted. */
export const send: (request: HttpRequest) => Promise<HttpAnswer> = sendByNode() ?? sendByFetch;

async function sendByFetch({ method, url, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
  const init = {
    method,
    headers,
    redirect: "error",
    signal,
    ...(body === undefined ? {} : { body }),
  } as const;
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text() };
}

/** Asks the process for the modules. An import would make bundlers for browsers look for them. */
function sendByNode(): ((request: HttpRequest) => Promise<HttpAnswer>) | null {
  if (typeof process === "undefined" || typeof process.getBuiltinModule !== "function") return null;
  if ("Bun" in globalThis || "Deno" in globalThis || process.release?.name !== "node") return null;
  const [http, https] = [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")];
  if (http?.request === undefined || https?.request === undefined) return null;
  const open = { keepAlive: true, timeout: idleMs };
  const agents = { http: new http.Agent(open), https: new https.Agent(open) };
  const begin = (url: string, options: object, onAnswer: (answer: IncomingMessage) => void): ClientRequest =>
    url.startsWith("https:")
      ? https.request(url, { ...options, agent: agents.https }, onAnswer)
      : http.request(url, { ...options, agent: agents.http }, onAnswer);
  return ({ method, url, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const request = begin(url, { method, headers, signal }, (answer) => {
        const status = answer.statusCode ?? 0;
        if (status >= 300 && status < 400) {
          request.destroy(new Error("unexpected redirect"));
          return;
        }
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk: string) => (text += chunk));
        answer.on("end", () => resolve({ status, text }));
        answer.on("error", reject);
      });
      request.on("error", reject);
      request.once("socket", (socket) => {
        if (!socket.connecting) return;
        const timer = setTimeout(() => {
          const message = `no connection within ${connectMs / 1_000} s`;
          request.destroy(Object.assign(new Error(message), { code: connectTimeout }));
        }, connectMs);
        socket.once("connect", () => clearTimeout(timer));
        socket.once("close", () => clearTimeout(timer));
      });
      request.end(body);
    });
}
