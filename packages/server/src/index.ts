export { createServer, type PawlServer, type ServerOptions } from "./server.js";
