/**
 * The protocol between user processes and the supervisor on the control socket: one JSON object per
 * line. The open connection itself counts most: while it is open, the server has a user.
 */
import type { Socket } from "node:net";
import type { ErrorMessage } from "./errors.js";

/**
 * Two copies of this package in one project may differ; they share a server only when they speak
 * the same.
 */
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

export function isFromUser(message: unknown): message is FromUser {
  return isObject(message) && typeof message["id"] === "number" && isKind(message["request"]);
}

export function isFromSupervisor(message: unknown): message is FromSupervisor {
  if (!isObject(message)) return false;
  return (
    typeof message["pid"] === "number" || (typeof message["id"] === "number" && isKind(message["reply"]))
  );
}

function isKind(value: unknown): boolean {
  return isObject(value) && typeof value["kind"] === "string";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Calls `receive` for every line; a peer that sends anything but JSON is cut off. */
export function receiveLines(socket: Socket, receive: (message: unknown) => void): void {
  let pending = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (pending + chunk).split("\n");
    pending = lines.pop() ?? "";
    if (pending.length > longestLine) socket.destroy();
    for (const line of lines) {
      try {
        receive(JSON.parse(line));
      } catch (error) {
        socket.destroy(error instanceof Error ? error : undefined);
      }
    }
  });
}
