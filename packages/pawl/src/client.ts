/**
 * `pawl/client`: `connect` to a server, the errors and the types. Nothing here imports the Postgres
 * driver or Node, so it works in browsers and wherever else there is `fetch`.
 */

import type { Logger } from "./values/logger.js";
import { checkOptions } from "./values/options.js";
import { checkLogger, checkMaxPayload } from "./worker/options.js";
import { connectServer } from "./api/connect-server.js";
import type { Pawl } from "./api/pawl.js";
import { checkServerUrl } from "./store/http/address.js";

export interface ConnectOptions {
  /** The bearer token for the server. */
  readonly token?: string | undefined;
  /** The most bytes of JSON of an input, payload or body. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

/** A client of a server (`http://…`, `https://…`). Opens nothing before its first call. */
export function connect(url: string, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(options, ["token", "maxPayloadBytes", "logger"], "the options of connect");
  return connectServer({
    address: checkServerUrl(url, given.token),
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    logger: checkLogger(given.logger),
  });
}

export * from "./exports.js";
