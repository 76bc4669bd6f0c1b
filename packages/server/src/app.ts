/** The Fastify application as the routes see it, and what every route has to say of itself. */

import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { IncomingMessage, ServerResponse } from "node:http";

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What a token may be allowed to do. */
export type Scope = "read" | "write" | "worker" | "admin";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The scope that a caller needs; "open": none. Every route names one. */
    readonly scope: Scope | "open";
  }
}
