/** `connect`: the client of one database, checked options and all. Nothing is opened before its first call. */

import { PostgresClient } from "./client.js";
import type { Logger } from "./define/logger.js";
import { checkInteger, checkOptions } from "./define/options.js";
import { checkLogger, checkMaxPayload, checkSchemaName } from "./engine/serve-options.js";
import { givenUrl } from "./locate.js";
import type { Pawl } from "./pawl.js";

export interface ConnectOptions {
  /** The schema of Pawl in the database. Default "pawl". */
  readonly schema?: string | undefined;
  /** How many connections the client may open. Default 10. */
  readonly pool?: number | undefined;
  /** How long an input may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

const defaults = { pool: 10 };

/** The client of one database. */
export function connect(url?: string, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(
    options,
    ["schema", "pool", "maxPayloadBytes", "logger"],
    "the options of connect",
  );
  return new PostgresClient({
    url: givenUrl(url),
    schema: checkSchemaName(given.schema),
    poolSize: checkInteger(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 }),
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    logger: checkLogger(given.logger),
  });
}
