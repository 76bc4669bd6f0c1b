/**
 * `connect`: checks its options and makes the client of a database or of a server. Opens nothing.
 */

import { Client } from "./client.js";
import { connectServer } from "./connect-server.js";
import { type Hub, hubOf } from "../local/hub.js";
import type { Logger } from "../values/logger.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { checkLogger, checkMaxPayload, checkSchemaName } from "../worker/options.js";
import { startTraced } from "../observe/tracing.js";
import { givenTarget } from "./locate.js";
import type { Pawl } from "./pawl.js";
import { openPostgresTransport } from "./postgres-transport.js";
import { within } from "./within.js";
import { refuseOptions } from "../store/http/address.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import { addressKey } from "../store/postgres/database.js";

export interface ConnectOptions {
  /** The schema of Pawl in the database. Default "pawl". Not for a server: it knows its schema. */
  readonly schema?: string | undefined;
  /** The bearer token for a server (an HTTP URL). Default: `PAWL_TOKEN`. */
  readonly token?: string | undefined;
  /** The most connections that the client opens to a database. Default 10. */
  readonly pool?: number | undefined;
  /** The most bytes of JSON of an input, payload or body. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

const defaults = { pool: 10 };

/**
 * A client of a database (`postgres://…`) or of a server (`http://…`, `https://…`). In place of the
 * URL of a database, it takes connection options or your own pool. Opens nothing before its first
 * call.
 *
 * @example
 * const pawl = connect(process.env.DATABASE_URL);
 * const pawl = connect({ host: "db.example.com", user: "app", password: () => signer.getAuthToken() });
 * const pawl = connect(new pg.Pool({ max: 20 }));
 */
export function connect(url?: DatabaseSource, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(
    options,
    ["schema", "token", "pool", "maxPayloadBytes", "logger"],
    "the options of connect",
  );
  const target = givenTarget(url, given.token);
  const maxPayloadBytes = checkMaxPayload(given.maxPayloadBytes);
  const logger = checkLogger(given.logger);
  if (target.kind === "server") {
    refuseOptions(given, ["schema", "pool"], "connect");
    return connectServer({ address: target, trace: startTraced, maxPayloadBytes, logger });
  }
  const { url: database } = target;
  const schema = checkSchemaName(given.schema);
  const poolSize = checkInteger(given.pool ?? defaults.pool, "pool", { min: 1, max: 1_000 });
  // A local Postgres has no address yet: workers then find the work of `within` when they poll.
  const hub = (): Hub | undefined =>
    database === undefined ? undefined : hubOf(addressKey({ url: database, schema }));
  return new Client({
    maxPayloadBytes,
    open: () => openPostgresTransport({ url: database, schema, poolSize, logger }),
    within: (tx) => within(tx, { schema, maxPayloadBytes, hub }),
  });
}
