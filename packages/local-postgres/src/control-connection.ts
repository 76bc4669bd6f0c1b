/**
 * The client side of the control socket. While it is open, the server stays alive. It keeps the
 * user's process alive only while a request waits for its reply.
 */
import { connect, type Socket } from "node:net";
import { isFromSupervisor, receiveLines, sendLine, type Reply, type Request } from "./protocol.js";

export class ControlConnection {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (reply: Reply | undefined) => void>();
  readonly #closed: Promise<void>;
  #lastId = 0;
  /** The latest process id that the supervisor told. */
  pid = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    receiveLines(socket, (message) => {
      if (!isFromSupervisor(message)) return;
      if ("pid" in message) this.pid = message.pid;
      else this.#settle(message.id, message.reply);
    });
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        for (const id of this.#waiting.keys()) this.#settle(id, undefined);
        resolve();
      });
    });
    socket.unref();
  }

  /** Undefined when nobody listens there. */
  static open(controlSocket: string): Promise<ControlConnection | undefined> {
    return new Promise((resolve) => {
      const socket = connect(controlSocket);
      socket.once("connect", () => resolve(new ControlConnection(socket)));
      socket.on("error", () => resolve(undefined)); // later errors are followed by "close"
    });
  }

  /** Undefined when the supervisor went away instead of replying. */
  request(request: Request): Promise<Reply | undefined> {
    if (this.#socket.destroyed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#lastId += 1;
      this.#waiting.set(this.#lastId, resolve);
      this.#socket.ref();
      sendLine(this.#socket, { id: this.#lastId, request });
    });
  }

  /** Resolves when the supervisor has closed its end. */
  async untilClosed(): Promise<void> {
    this.#socket.ref();
    await this.#closed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #settle(id: number, reply: Reply | undefined): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#socket.unref();
    settle?.(reply);
  }
}
