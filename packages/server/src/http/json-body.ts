/**
 * Parses bodies of requests: JSON in UTF-8, and nothing else. `JSON.parse` makes `__proto__` an
 * ordinary member, so it pollutes no prototype and loses nothing; the library decides which values
 * it takes.
 */

import { isUtf8 } from "node:buffer";
import type { App } from "./app.js";
import { RequestError } from "./problems.js";

export function readJsonBodies(app: App): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    ["application/json", "application/problem+json"],
    { parseAs: "buffer" },
    (_request, body, done) => {
      try {
        done(null, parseBody(body));
      } catch (error) {
        done(error as Error, undefined);
      }
    },
  );
}

/** An empty body is undefined. */
function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new RequestError(400, "BadRequest", "the body is not UTF-8", "body");
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    throw new RequestError(400, "BadRequest", `the body is not JSON: ${(error as Error).message}`, "body");
  }
}
