/**
 * `createHandler`: the API and the dashboard inside an app of the user, under a path of it. There is
 * no port: the app passes requests on, as Node's or as those of the fetch API.
 */

import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { below } from "./embed/base-path.js";
import { FetchDoor } from "./embed/fetch-door.js";
import { acceptParsedBodies } from "./embed/parsed-body.js";
import type { AuthMode } from "./http/auth.js";
import { askHost } from "./http/host-auth.js";
import { problem, problemType } from "./http/problems.js";
import { checkHandler, type HandlerOptions } from "./options.js";
import { openService } from "./service.js";

/** The requests that a handler takes: those of Node (Express, Fastify, Nest) and of the fetch API. */
export type HostRequest = IncomingMessage | Request;

export interface PawlHandler<Taken extends HostRequest = HostRequest> {
  /**
   * Answers a request of Node's `http`, and of frameworks on it. A request outside `basePath` goes to
   * `next`; without `next` it gets status 404.
   */
  readonly listener: (request: Taken & IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /** Answers a request of the fetch API. Aborting the request ends a call that waits. */
  readonly fetch: (request: Taken & Request) => Promise<Response>;
  /**
   * Answers waiting calls, gives the others `drainTimeout`, then closes the connections to the
   * database. Requests that arrive later get status 503. Close your own server first, or after.
   */
  close(): Promise<void>;
}

/**
 * Serves the REST API and the dashboard inside your own app. It does all that `pawl server` does, but
 * for listening: it also reclaims runs of dead workers, fires schedules and sends deliveries.
 *
 * @example
 *   // Express: https://localhost:3000/admin/pawl/ is the dashboard, /admin/pawl/v1 the API.
 *   const pawl = await createHandler({
 *     database: process.env.DATABASE_URL,
 *     basePath: "/admin/pawl",
 *     authorize: (request: express.Request) =>
 *       request.session.isAdmin ? { name: request.session.user, scopes: ["admin"] } : null,
 *   });
 *   app.use("/admin/pawl", pawl.listener);
 *
 * @example
 *   // Hono, Next.js and other apps on the fetch API, with bearer tokens.
 *   const pawl = await createHandler({ basePath: "/pawl", tokens: [process.env.PAWL_TOKEN] });
 *   app.all("/pawl/*", (c) => pawl.fetch(c.req.raw));
 */
export async function createHandler<Taken extends HostRequest = HostRequest>(
  options: HandlerOptions<Taken>,
): Promise<PawlHandler<Taken>> {
  const { access, ...settings } = checkHandler(options);
  const { basePath, drainMs } = settings;
  const auth: AuthMode =
    typeof access !== "function"
      ? access
      : {
          kind: "host",
          rightsOf: (raw) =>
            // The types of both doors let in only requests that `authorize` takes.
            askHost(raw.headers, () => access((door.requestOf(raw) ?? raw) as Taken)),
        };
  const service = await openService({ ...settings, auth });
  const { app } = service;
  const door = new FetchDoor(app.server);
  acceptParsedBodies(app);
  const open = new Set<ServerResponse>();
  const track = (_request: IncomingMessage, response: ServerResponse): void => {
    open.add(response);
    response.once("close", () => open.delete(response));
  };
  app.server.prependListener("request", track);
  await app.ready();
  service.deliver();
  let isClosing = false;

  const close = async (): Promise<void> => {
    isClosing = true;
    service.beginClosing();
    const deadlineMs = performance.now() + drainMs;
    while (open.size > 0 && performance.now() < deadlineMs) await untilClosed(open, deadlineMs);
    for (const response of open) response.destroy();
    await app.close();
    await service.end();
  };
  let closed: Promise<void> | undefined;
  return {
    listener: (request, response, next) => {
      const path = below(basePath, originalUrl(request));
      if (path === null && next !== undefined) return next();
      if (path === null || isClosing) return refuse(response, path === null);
      track(request, response);
      request.url = path;
      app.routing(request, response);
    },
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const path = below(basePath, pathname + search);
      if (path === null || isClosing) return refusal(path === null);
      return door.serve(request, path);
    },
    close: () => (closed ??= close()),
  };
}

/** Express and its like cut the path of a mount point off `url`. */
function originalUrl(request: IncomingMessage & { readonly originalUrl?: unknown }): string {
  const { originalUrl: original, url = "/" } = request;
  return typeof original === "string" ? original : url;
}

/** Waits until one of them is closed, or until the deadline. */
async function untilClosed(open: ReadonlySet<ServerResponse>, deadlineMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs - performance.now());
  });
  const closings = [...open].map(
    (response) => new Promise<void>((resolve) => response.once("close", resolve)),
  );
  await Promise.race([late, ...closings]);
  clearTimeout(timer);
}

const refusalHeaders = { "content-type": problemType, "cache-control": "no-store" };

function refusalOf(isOutside: boolean): { status: number; body: string } {
  const sent = isOutside
    ? problem(404, "RouteNotFound", "this path is not below the basePath of createHandler", randomUUID())
    : problem(503, "Unavailable", "the handler is closed: its app is shutting down", randomUUID());
  return { status: sent.status, body: JSON.stringify(sent) };
}

function refuse(response: ServerResponse, isOutside: boolean): void {
  const { status, body } = refusalOf(isOutside);
  response.writeHead(status, refusalHeaders).end(body);
}

function refusal(isOutside: boolean): Response {
  const { status, body } = refusalOf(isOutside);
  return new Response(body, { status, headers: refusalHeaders });
}
