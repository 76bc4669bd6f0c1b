/**
 * A minimal HTTP/1.1 client for load: one connection, one request at a time, answers with a content
 * length. It shares the machine with the measured server, and takes a sixth of the CPU time of
 * `node:http`.
 */

import { once } from "node:events";
import { connect } from "node:net";

export interface HttpConnection {
  /** Resolves with the whole answer; rejects if that says no. */
  post(path: string, body: string): Promise<string>;
  end(): void;
}

export async function openConnection(url: string): Promise<HttpConnection> {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  let received = "";
  let waiting: { resolve: (text: string) => void; reject: (error: Error) => void } | undefined;
  let broken: Error | undefined;
  const fail = (error: Error): void => {
    broken ??= error;
    waiting?.reject(broken);
  };
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server has closed the connection")));
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    received += chunk;
    const bodyAt = received.indexOf("\r\n\r\n") + 4;
    if (bodyAt === 3) return;
    const length = /^content-length: (\d+)\r$/im.exec(received.slice(0, bodyAt))?.[1];
    if (length === undefined) {
      fail(new Error("the answer does not tell its length"));
      return;
    }
    if (received.length < bodyAt + Number(length)) return;
    const answer = received;
    received = "";
    if (answer.startsWith("HTTP/1.1 20")) waiting?.resolve(answer.slice(bodyAt));
    else fail(new Error(answer));
  });
  return {
    post: (path, body) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        if (broken !== undefined) reject(broken);
        socket.write(
          `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
            `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
      }),
    end: () => void socket.destroy(),
  };
}
