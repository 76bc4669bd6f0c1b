/** `@pawl/server`: the public API. Everything else may change with every release. */

export { createHandler, type HostRequest, type PawlHandler } from "./handler.js";
export { readEnvironment, type ReadEnvironment } from "./environment.js";
export type { Authorized, HostCaller } from "./http/host-auth.js";
export type { DashboardOptions, HandlerOptions, ServerOptions } from "./options.js";
export type { Route } from "./http/route-table.js";
export { createServer, type PawlServer } from "./server.js";
export { sendTraces, type TraceOptions, type Traces } from "./traces.js";
