/**
 * How many requests are under way at once. A caller may send many on one connection without waiting for the answers (HTTP pipelining):
 * they are served one after the other, as they are answered, and meanwhile nothing more is read of that connection. And there is a
 * bound for all connections together. Asked before anything else of a request.
 */

import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { RequestError } from "./problems.js";

/** More than one read of a connection can bring; after that it is paused. */
const maxWaiting = 4_096;

/** The requests of one connection. */
interface Line {
  isBusy: boolean;
  isPaused: boolean;
  readonly waiting: (() => void)[];
}

export class InFlight {
  readonly #most: number;
  readonly #lines = new WeakMap<Socket, Line>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Calls `go` when the request is to be served: at once, if none is under way on its connection. */
  admit({ raw }: FastifyRequest, reply: FastifyReply, go: (refusal?: Error) => void): void {
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

  #begin(line: Line, socket: Socket, reply: FastifyReply, go: (refusal?: Error) => void): void {
    line.isBusy = true;
    this.#count++;
    // Comes once for the answer that is under way, also if nobody is there to read it.
    reply.raw.once("close", () => {
      line.isBusy = false;
      this.#count--;
      // Those behind an answer that closes the connection get none.
      if (socket.writable) this.#next(line, socket);
    });
    if (this.#count <= this.#most) return go();
    const detail = `the server has ${this.#most} requests under way, which is as many as it takes; ask again a little later`;
    go(new RequestError(503, "Overloaded", detail));
  }

  #next(line: Line, socket: Socket): void {
    line.waiting.shift()?.();
    if (!line.isPaused || line.waiting.length > 0) return;
    line.isPaused = false;
    socket.resume();
  }
}
