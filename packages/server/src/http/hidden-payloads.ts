/**
 * Leaves payloads out of answers to browsers, if the operator wants that: inputs, states, outputs,
 * payloads of signals and bodies of messages. A browser names the site that a request comes from in
 * `sec-fetch-site`; over plain HTTP it does not, so the dashboard also sends a header of its own.
 * Programs, such as workers, send neither. Used by `app.ts`.
 */

import type { IncomingHttpHeaders } from "node:http";
import type { App } from "./app.js";

/** The members of answers that have values of users. */
const payloads: ReadonlySet<string> = new Set(["input", "state", "output", "payload", "body"]);
const hidden = "[hidden]";

export function hidePayloads(app: App): void {
  app.addHook("preSerialization", (request, _reply, payload, done) => {
    // The OpenAPI document names these members, and has no values.
    const isDocument = request.routeOptions.url === "/v1/openapi.json";
    done(null, isBrowser(request.headers) && !isDocument ? withoutPayloads(payload) : payload);
  });
}

function isBrowser(headers: IncomingHttpHeaders): boolean {
  return headers["sec-fetch-site"] !== undefined || headers["x-pawl-dashboard"] !== undefined;
}

function withoutPayloads(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutPayloads(item));
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const members = Object.entries(value).map(([name, inner]): [string, unknown] => [
    name,
    payloads.has(name) && inner !== null && inner !== undefined ? hidden : withoutPayloads(inner),
  ]);
  return Object.fromEntries(members);
}
