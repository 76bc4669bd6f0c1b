/**
 * Limits the bytes of request bodies in memory: a body stays there, several times over, until its
 * request is answered. A body with a content length counts before it is read; a chunked one counts
 * as it arrives. Small bodies are free, so that a caller with large ones can still send its
 * heartbeats.
 */

import { type Readable, Transform } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { App } from "./app.js";
import { Budget, type Share, shareOf } from "./budget.js";

const freeBytes = 16 * 1024;
/** The largest body that a route takes. */
const perCaller = 64 * 1024 * 1024;
const inAll = 128 * 1024 * 1024;

export function budgetBodies(app: App): void {
  const budget = new Budget({
    perCaller,
    inAll,
    what: "bytes of request bodies",
    advice: "send smaller batches, or fewer at a time",
  });
  const shares = new WeakMap<FastifyRequest, Share>();
  const take = (request: FastifyRequest, bytes: number): Share => {
    const share = budget.take(shareOf(request), bytes);
    shares.set(request, share);
    return share;
  };
  app.addHook("onRequest", (request, reply, done) => {
    // Their bodies are not read.
    if (request.method === "GET" || request.method === "HEAD") return done();
    const bytes = Number(request.headers["content-length"] ?? 0);
    if (bytes > freeBytes) take(request, bytes);
    // Fires once for every answer, also if the caller has disconnected.
    if (bytes > freeBytes || isChunked(request)) reply.raw.once("close", () => shares.get(request)?.end());
    done();
  });
  app.addHook("preParsing", (request, _reply, payload, done) => {
    if (!isChunked(request)) return done(null, payload);
    done(
      null,
      counted(payload as Readable, (bytes) => {
        const share = shares.get(request);
        if (share === undefined) take(request, bytes);
        else share.grow(bytes);
      }),
    );
  });
}

function isChunked({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined;
}

/** The same stream; it fails when `count` throws. Free bytes are not counted. */
function counted(payload: Readable, count: (bytes: number) => void): Readable {
  let free = freeBytes;
  const through = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      const bytes = chunk.length - Math.min(free, chunk.length);
      free -= chunk.length - bytes;
      try {
        if (bytes > 0) count(bytes);
        done(null, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
  payload.once("error", (error) => through.destroy(error));
  return payload.pipe(through);
}
