/**
 * How many requests are under way at once. A caller may send many on one connection without waiting for the answers (HTTP pipelining):
 * they are served one after the other, as they are answered, and meanwhile nothing more is read of that connection. So there are never
 * more requests under way than connections. Asked before anything else of a request.
 */

import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";

/** More than one read of a connection can bring; after that it is paused. */
const maxWaiting = 4_096;

/** The requests of one connection. */
interface Line {
  isBusy: boolean;
  isPaused: boolean;
  readonly waiting: (() => void)[];
}

export class InFlight {
  readonly #lines = new WeakMap<Socket, Line>();

  /** Calls `go` when the request is to be served: at once, if none is under way on its connection. */
  admit({ raw }: FastifyRequest, reply: FastifyReply, go: () => void): void {
    const { socket } = raw;
    let line = this.#lines.get(socket);
    if (line === undefined) this.#lines.set(socket, (line = { isBusy: false, isPaused: false, waiting: [] }));
    if (!line.isBusy) return this.#begin(line, socket, reply, go);
    if (line.waiting.length >= maxWaiting) {
      socket.destroy();
      return;
    }
    line.waiting.push(() => this.#begin(line, socket, reply, go));
    line.isPaused = true;
    socket.pause();
  }

  #begin(line: Line, socket: Socket, reply: FastifyReply, go: () => void): void {
    line.isBusy = true;
    // Comes once for the answer that is under way, also if nobody is there to read it.
    reply.raw.once("close", () => {
      line.isBusy = false;
      // Those behind an answer that closes the connection get none.
      if (socket.writable) this.#next(line, socket);
    });
    go();
  }

  #next(line: Line, socket: Socket): void {
    line.waiting.shift()?.();
    if (!line.isPaused || line.waiting.length > 0) return;
    line.isPaused = false;
    socket.resume();
  }
}
