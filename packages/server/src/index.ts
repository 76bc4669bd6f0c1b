export type { ServerOptions } from "./options.js";
export { createServer, type PawlServer } from "./server.js";
