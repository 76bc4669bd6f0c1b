/**
 * The Fastify application and what applies to every request: time and size limits, request ids,
 * authentication, bodies, validation, and problem documents for errors. Made by `createServer`.
 */

import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RawServerDefault,
} from "fastify";
import { Forbidden, type Logger } from "pawl";
import { actingAs } from "pawl/engine";
import { anonymous, authenticate, type Caller, type AuthMode } from "./auth.js";
import { budgetBodies } from "./body-budget.js";
import type { Dashboard } from "./dashboard.js";
import { hidePayloads } from "./hidden-payloads.js";
import { readJsonBodies } from "./json-body.js";
import { Pipelining } from "./pipelining.js";
import { problem, problemType, RequestError, type Problem, toProblem } from "./problems.js";
import { type Route, RouteTable } from "./route-table.js";
import { compileValidator } from "./validation.js";

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** The rights that a token can give. */
export type Scope = "start" | "read" | "write" | "worker" | "admin";

export type RouteScope = Scope | "any" | "open";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * The scope that a caller needs; "any": whichever it has; "open": none. A route without one needs
     * "admin".
     */
    readonly scope: RouteScope;
    /**
     * "checked": the handler asks `request.caller` whether the prefixes of its token allow the
     * names in the request. A route without it is closed to tokens with prefixes.
     */
    readonly prefixes?: "checked";
  }
  interface FastifyRequest {
    caller: Caller;
  }
}

export interface AppOptions {
  readonly auth: AuthMode;
  /** null: the app that mounts the handler decides. */
  readonly maxConnections: number | null;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
  /** Answers paths that no route has; null: nothing does. */
  readonly dashboard: Dashboard | null;
  /** Whether answers to browsers have no payloads. */
  readonly hidesPayloads: boolean;
}

const limits = {
  /** Room in a body beside its input or payload. */
  bodyRoomBytes: 64 * 1024,
  headerBytes: 16 * 1024,
  /** From the first byte of a request to the end of its headers, and to the end of its body. */
  headersMs: 10_000,
  requestMs: 30_000,
  /** How often Node checks those two. */
  checkMs: 2_000,
  /** Longer than any long poll, and than the idle timeout of common proxies. */
  idleMs: 75_000,
  pathPart: 1_024,
};

/** On every answer: no cache may keep it, and no browser may guess its type. */
const answerHeaders = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function makeApp(options: AppOptions): { app: App; routes: readonly Route[] } {
  const { auth, maxConnections, maxPayloadBytes, logger, dashboard } = options;
  const answer = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
    sendProblem(reply, toProblem(error, request.id, logger), auth);
  const app: App = fastify({
    bodyLimit: maxPayloadBytes + limits.bodyRoomBytes,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    // For a socket without traffic: a long poll, or an answer that nobody reads.
    connectionTimeout: limits.idleMs,
    http: {
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkMs,
      maxHeaderSize: limits.headerBytes,
    },
    routerOptions: { maxParamLength: limits.pathPart },
    exposeHeadRoutes: false,
    // A request that arrives while the server closes is served, with "connection: close".
    return503OnClosing: false,
    forceCloseConnections: "idle",
    requestIdHeader: false,
    genReqId: ({ headers }) => requestId(headers["x-request-id"]),
    frameworkErrors: answer,
    clientErrorHandler: answerSocket,
  }).withTypeProvider<TypeBoxTypeProvider>();
  if (maxConnections !== null) app.server.maxConnections = maxConnections;
  const routes = new RouteTable(app);
  readJsonBodies(app);
  app.setValidatorCompiler(compileValidator);
  // Schemas of answers only document the API: handlers' values are sent unchanged.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  app.decorateRequest("caller");
  const pipelining = new Pipelining();
  app.addHook("onRequest", (request, reply, done) => pipelining.admit(request, reply, done));
  app.addHook("onRequest", (request, reply, done) => {
    void reply.header("x-request-id", request.id).headers(answerHeaders);
    if (request.is404 && dashboard?.answer(request, reply) === true) return;
    const { scope = request.is404 ? undefined : "admin", prefixes } = request.routeOptions.config as {
      scope?: RouteScope;
      prefixes?: "checked";
    };
    const admit = (caller: Caller): void => {
      if (!request.is404 && prefixes === undefined) requireNoPrefixes(caller);
      request.caller = caller;
    };
    const found =
      scope === "open" ? anonymous : authenticate(auth, request.raw, scope === "any" ? undefined : scope);
    if (found instanceof Promise) {
      const go = (): void => done();
      found.then(admit).then(go, done);
      return;
    }
    admit(found);
    done();
  });
  budgetBodies(app);
  // After the body: what the handler does is an action of this caller.
  app.addHook("preHandler", ({ caller, ip }, _reply, done) => {
    const who = caller.tokenName ?? (auth.kind === "proxy" ? "proxy" : "local");
    // A request that did not come through a socket of ours has no address.
    actingAs({ who, from: caller.from ?? (ip as string | undefined) ?? "app" }, done);
  });
  if (options.hidesPayloads) hidePayloads(app);
  app.setErrorHandler(answer);
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.replace(/\?.*$/s, "");
    const methods = routes.methodsAt(path);
    if (methods.length === 0) {
      throw new RequestError(
        404,
        "RouteNotFound",
        `there is no route ${path}; /v1/openapi.json lists all routes`,
      );
    }
    void reply.header("allow", methods.join(", "));
    throw new RequestError(
      405,
      "MethodNotAllowed",
      `${path} supports ${methods.join(", ")}, not ${request.method}`,
    );
  });
  return { app, routes: routes.list };
}

function requireNoPrefixes({ hasPrefixes, tokenName }: Caller): void {
  if (!hasPrefixes) return;
  throw new Forbidden(
    `the token "${tokenName ?? ""}" is limited to some names or queues, and this call concerns all of them`,
  );
}

function sendProblem(reply: FastifyReply, sent: Problem, auth: AuthMode): void {
  // A caller that the host app does not know needs no token: it signs in there.
  if (sent.status === 401 && auth.kind !== "host") void reply.header("www-authenticate", "Bearer");
  if (sent.status === 503 || sent.status === 429) void reply.header("retry-after", "1");
  // Errors that Fastify finds before any hook have no other headers.
  void reply.headers(answerHeaders);
  // As bytes: the schema of the route does not describe a problem.
  void reply
    .code(sent.status)
    .type(problemType)
    .send(Buffer.from(JSON.stringify(sent)));
}

/** The id that the caller sent, if it is safe in headers and logs, else a new one. */
function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}

/** Answers bytes that are not a valid request: writes straight to the socket. */
function answerSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, line, detail] =
    error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? ([408, "Request Timeout", "the request did not arrive in time"] as const)
      : error.code === "HPE_HEADER_OVERFLOW"
        ? ([
            431,
            "Request Header Fields Too Large",
            `the headers are longer than ${limits.headerBytes} bytes`,
          ] as const)
        : ([400, "Bad Request", "this is not an HTTP request"] as const);
  const body = JSON.stringify(
    problem(status, status === 408 ? "RequestTimeout" : "BadRequest", detail, randomUUID()),
  );
  const headers = {
    "content-type": problemType,
    "content-length": Buffer.byteLength(body),
    connection: "close",
    ...answerHeaders,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${line}\r\n${lines.join("")}\r\n${body}`);
}
