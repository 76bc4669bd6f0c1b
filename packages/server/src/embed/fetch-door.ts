/**
 * Serves a `Request` of the fetch API by an ordinary HTTP server that listens nowhere: both ends of a
 * connection are in this process. So limits, timeouts, long polls, streams and aborts behave as over
 * a socket. Called by `createHandler`.
 */

import { type IncomingMessage, request as openRequest, type Server } from "node:http";
import { type Duplex, duplexPair, Readable } from "node:stream";

/** These concern one connection, not the request. */
const ofConnection = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"]);
/** Answers without a body. */
const bodiless = new Set([204, 205, 304]);

export class FetchDoor {
  readonly #server: Server;
  readonly #requests = new WeakMap<object, Request>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** The request for which this one was opened; undefined: it came another way. */
  requestOf(raw: IncomingMessage): Request | undefined {
    return this.#requests.get(raw.socket);
  }

  /** Rejects if the caller aborts, or if the server ends the connection before it answers. */
  async serve(request: Request, path: string): Promise<Response> {
    const [near, far] = duplexPair();
    this.#requests.set(far, request);
    this.#server.emit("connection", far);
    const sent = openRequest({
      method: request.method,
      path,
      headers: headersOf(request),
      createConnection: () => near,
      setHost: false,
    });
    const end = (): void => hangUp(near, far);
    if (request.signal.aborted) end();
    request.signal.addEventListener("abort", end, { once: true });
    near.once("close", () => request.signal.removeEventListener("abort", end));
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.on("error", (error) => {
        end();
        reject(request.signal.aborted ? (request.signal.reason as Error) : error);
      });
    });
    if (request.body === null) sent.end();
    else {
      const body = Readable.fromWeb(request.body);
      body.once("error", (error) => sent.destroy(error));
      // The server may answer before it has the whole body. The rest is read and dropped, as Node does:
      // ending the body would end the caller's connection, maybe before its answer.
      sent.once("close", () => body.unpipe(sent).resume());
      body.pipe(sent);
    }
    return toResponse(await answered, request.method, end);
  }
}

function headersOf(request: Request): Record<string, string> {
  const headers = Object.fromEntries([...request.headers].filter(([name]) => !ofConnection.has(name)));
  return { host: new URL(request.url).host, ...headers, connection: "close" };
}

function toResponse(answer: IncomingMessage, method: string, end: () => void): Response {
  const { statusCode: status = 500, statusMessage: statusText = "" } = answer;
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    if (!ofConnection.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  // The reader of the body has left, or has it all.
  answer.once("close", end);
  const isEmpty = bodiless.has(status) || method === "HEAD";
  if (isEmpty) answer.resume();
  const body = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText, headers });
}

function hangUp(...sides: readonly Duplex[]): void {
  for (const side of sides) side.destroy();
}
