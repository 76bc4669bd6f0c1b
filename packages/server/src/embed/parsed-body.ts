/**
 * Bodies that the host app has read already: `express.json()`, NestJS and API routes of Next.js parse
 * a body before the handler sees the request, and leave its value in `request.body`. The stream of
 * such a request would never end again, so this puts the body back as text.
 */

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { App } from "../http/app.js";
import { RequestError } from "../http/problems.js";

export function acceptParsedBodies(app: App): void {
  app.addHook("preParsing", (request, _reply, payload, done) => {
    const raw: IncomingMessage & { readonly body?: unknown } = request.raw;
    if (!raw.readableDidRead || !hasBody(raw)) return done(null, payload);
    if (raw.body === undefined) {
      return done(
        new RequestError(
          400,
          "BadRequest",
          "the app that serves this has read the body of the request and not kept it in request.body",
        ),
      );
    }
    const bytes = toBytes(raw.body);
    const again = Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false });
    // Fastify compares it with the header content-length, which counts the text of the caller.
    const sent = Number(request.headers["content-length"] ?? bytes.length);
    done(null, Object.assign(again, { receivedEncodedLength: sent }));
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function toBytes(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}
