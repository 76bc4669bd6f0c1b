/**
 * Serves one request per connection at a time. A caller may send many requests without waiting for
 * the answers (HTTP pipelining). They are served one after the other, and the server reads no more
 * from that connection until then. So there are never more requests in progress than connections.
 * The first hook of every request (`app.ts`).
 */

import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";

/** More than one read of a socket can contain; after that read the socket is paused. */
const maxWaiting = 4_096;

/** The requests of one connection. */
interface Connection {
  isBusy: boolean;
  isPaused: boolean;
  readonly waiting: (() => void)[];
}

export class Pipelining {
  readonly #connections = new WeakMap<Socket, Connection>();

  /** Calls `go` when the request may be served: at once, if its connection serves no other. */
  admit({ raw }: FastifyRequest, reply: FastifyReply, go: () => void): void {
    const { socket } = raw;
    let connection = this.#connections.get(socket);
    if (connection === undefined)
      this.#connections.set(socket, (connection = { isBusy: false, isPaused: false, waiting: [] }));
    if (!connection.isBusy) return this.#begin(connection, socket, reply, go);
    if (connection.waiting.length >= maxWaiting) {
      socket.destroy();
      return;
    }
    connection.waiting.push(() => this.#begin(connection, socket, reply, go));
    connection.isPaused = true;
    socket.pause();
  }

  #begin(connection: Connection, socket: Socket, reply: FastifyReply, go: () => void): void {
    connection.isBusy = true;
    // Fires once for this answer, also if the caller has disconnected.
    reply.raw.once("close", () => {
      connection.isBusy = false;
      // Requests behind an answer that closes the connection get no answer.
      if (socket.writable) this.#next(connection, socket);
    });
    go();
  }

  #next(connection: Connection, socket: Socket): void {
    connection.waiting.shift()?.();
    if (!connection.isPaused || connection.waiting.length > 0) return;
    connection.isPaused = false;
    socket.resume();
  }
}
