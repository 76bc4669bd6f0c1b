/**
 * The client of a server: `connect` with an HTTP URL, and the whole of `pawl/client`. Imports
 * neither the driver nor Node.
 */

import { hubOf } from "../local/hub.js";
import type { ServerAddress } from "../store/http/address.js";
import { HttpTransport, type HttpTransportOptions } from "../store/http/http-transport.js";
import { Client } from "./client.js";

interface ServerSettings extends Pick<HttpTransportOptions, "logger" | "trace"> {
  readonly address: ServerAddress;
  readonly maxPayloadBytes: number;
}

export function connectServer({ address, maxPayloadBytes, ...rest }: ServerSettings): Client {
  return new Client({
    maxPayloadBytes,
    open: async () => new HttpTransport({ address, hints: hubOf(address.url), ...rest }),
  });
}
