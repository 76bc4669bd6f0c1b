/**
 * What user processes and the supervisor say to each other over the control socket: one JSON object per line. The
 * connection itself is the most important message: as long as it is open, the server has a user.
 */
import type { Socket } from "node:net";
import type { ErrorMessage } from "./errors.js";

/** Two copies of this package in one project may differ; they share a server only when they speak the same. */
export const protocolVersion = 1;

export interface AttachRequest {
  kind: "attach";
  protocolVersion: number;
  directory: string | undefined;
  port: number | "free" | undefined;
  database: string;
  settings: Record<string, string>;
}

export type Request =
  | AttachRequest
  | { kind: "restart"; mode: "fast" | "immediate" }
  | { kind: "kill" }
  | { kind: "start" }
  | { kind: "release" };

export interface Attached {
  url: string;
  directory: string;
}

export type Reply =
  | { kind: "attached"; server: Attached }
  | { kind: "done" }
  /** The server is on its way out: wait until the connection closes, then look again. */
  | { kind: "ending" }
  /** The record was copied from another directory together with the data. */
  | { kind: "otherDirectory" }
  | { kind: "failed"; error: ErrorMessage };

/** `id` ties a reply to its request; `pid` tells every user about a changed process. */
export type FromUser = { id: number; request: Request };
export type FromSupervisor = { id: number; reply: Reply } | { pid: number };

const longestLine = 1_000_000;

export function sendLine(socket: Socket, message: FromUser | FromSupervisor): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/** Calls `receive` for every line. Both ends are this package, so that the shape is taken as given. */
export function receiveLines<Message>(socket: Socket, receive: (message: Message) => void): void {
  let pending = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (pending + chunk).split("\n");
    pending = lines.pop() ?? "";
    if (pending.length > longestLine) socket.destroy();
    for (const line of lines) receive(JSON.parse(line) as Message);
  });
}
