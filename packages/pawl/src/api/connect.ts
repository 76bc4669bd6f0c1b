/** `connect`: the client of one database, or of one server, checked options and all. Nothing is opened before its first call. */

import { PostgresClient } from "./client.js";
import type { Logger } from "../values/logger.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { checkLogger, checkMaxPayload, checkSchemaName } from "../worker/options.js";
import { startTraced } from "../observe/tracing.js";
import { HttpClient } from "./http-client.js";
import { givenTarget } from "./locate.js";
import type { Pawl } from "./pawl.js";
import { refuseOptions } from "../store/http/address.js";

export interface ConnectOptions {
  /** The schema of Pawl in the database. Default "pawl". Not for a server, which has its own. */
  readonly schema?: string | undefined;
  /** What to show to a server (an HTTP URL). Default: `PAWL_TOKEN`. */
  readonly token?: string | undefined;
  /** How many connections the client may open to a database. Default 10. */
  readonly pool?: number | undefined;
  /** How long an input may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

const defaults = { pool: 10 };

/** The client of one database (`postgres://…`), or of one server (`http://…`, `https://…`). */
export function connect(url?: string, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(
    options,
    ["schema", "token", "pool", "maxPayloadBytes", "logger"],
    "the options of connect",
  );
  const target = givenTarget(url, given.token);
  const common = {
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    logger: checkLogger(given.logger),
  };
  if (target.kind === "server") {
    refuseOptions(given, ["schema", "pool"], "connect");
    return new HttpClient({ url: target.url, token: target.token, trace: startTraced, ...common });
  }
  return new PostgresClient({
    url: target.url,
    schema: checkSchemaName(given.schema),
    poolSize: checkInteger(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 }),
    ...common,
  });
}
