/**
 * A proxy before a test database that asks its clients for TLS or for a password, as managed databases
 * do. Its certificate is its own CA, for the host `localhost`; the key protects nothing but tests.
 */

import { once } from "node:events";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { afterAll } from "vitest";
import { Messages } from "./messages.js";
import { type Pair, relayTo } from "./relay.js";

export const certificate = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUBtpCOrsvDgdKxfE9B+eU/uHXBR0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExODA4Mzc0MFoYDzIxMjYxMDI1
MDgzNzQwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASrSZg9iPqjlxLEUPez03R/ze4D8mkPEx5nOiBjmKfLuYjWHapFTNU5
Ph/ZJ0fr0G1su7hksLyl/QltaJur+5voo2kwZzAdBgNVHQ4EFgQUB7XFT3nIBqeQ
h+TQVAWlBaGUA70wHwYDVR0jBBgwFoAUB7XFT3nIBqeQh+TQVAWlBaGUA70wDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIgV54Gq21W1Nvw53O8RxsQm/NEzTqdk/HonTYtSKVm7DECIQCUMmt+0QP5
s79y+gcff6XYznnpI57bk2nsYO29Lc0N2A==
-----END CERTIFICATE-----
`;
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgp6ZusEuv/aEHxYfe
ZIvZ0pPvLvVnbLM3ZdQDBmq9f9KhRANCAASrSZg9iPqjlxLEUPez03R/ze4D8mkP
Ex5nOiBjmKfLuYjWHapFTNU5Ph/ZJ0fr0G1su7hksLyl/QltaJur+5vo
-----END PRIVATE KEY-----
`;

interface FrontOptions {
  /** Answers a client that asks for TLS with a handshake; otherwise with a no. */
  readonly tls?: boolean;
  /** Whether this password is right. Left out: no password is asked for. */
  readonly isRight?: (password: string) => boolean;
}

const tlsRequest = 80_877_103;

export interface Front {
  readonly host: string;
  readonly port: number;
  /** The URL of the database through it, by the host `localhost`. */
  readonly url: string;
  /** Ends all connections. */
  reset(): void;
}

export async function frontOf(target: string, { tls = false, isRight }: FrontOptions): Promise<Front> {
  const receive = async ({ client, database, end }: Pair): Promise<void> => {
    let stream: Duplex = client;
    let first = await firstOf(client, true);
    if (first.length === 8 && first.readInt32BE(4) === tlsRequest) {
      client.write(tls ? "S" : "N");
      if (tls) stream = new TLSSocket(client, { isServer: true, key, cert: certificate });
      stream.on("error", () => {});
      first = await firstOf(stream, true);
    }
    if (isRight !== undefined) {
      stream.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
      const message = await firstOf(stream, false);
      if (!isRight(message.subarray(5, -1).toString())) {
        stream.end(failure("28P01", "password authentication failed"));
        return;
      }
    }
    database.write(first);
    stream.pipe(database).pipe(stream);
    stream.once("close", end);
  };
  const relay = await relayTo(target, (pair) => void receive(pair).catch(pair.end));
  afterAll(relay.close);
  const url = new URL(relay.url);
  url.hostname = "localhost";
  return { host: "localhost", port: Number(url.port), url: url.href, reset: relay.reset };
}

/** The first message that comes; the driver sends no second one before it has an answer. */
async function firstOf(stream: Duplex, isStartup: boolean): Promise<Buffer> {
  const messages = new Messages({ fromClient: isStartup });
  for (;;) {
    const [chunk] = (await once(stream, "data")) as [Buffer];
    stream.pause();
    const [message] = messages.take(chunk);
    if (message === undefined) {
      stream.resume();
      continue;
    }
    stream.resume();
    return message.bytes;
  }
}

function failure(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
