/**
 * Checks the ways in which users say where their database is (`source-types.ts`), and makes of each
 * what the driver needs. `store/postgres/database.ts` opens connections with it.
 */

import type pgTypes from "pg";
import { InvalidOption } from "../../values/errors.js";
import { checkInteger, checkOptions, checkString, isObject } from "../../values/options.js";
import { show } from "../../values/show.js";
import pg from "./driver.js";
import type { ConnectionOptions, DatabaseSource, PgPool } from "./source-types.js";
import { takeTls, tlsOptions } from "./tls.js";

const names = ["host", "port", "database", "user", "password", "sslmode", "sslrootcert", "ssl"] as const;

export function isPool(source: unknown): source is PgPool {
  return isObject(source) && typeof source["connect"] === "function" && typeof source["query"] === "function";
}

/** Connection options, checked. Errors do not repeat the password. */
export function checkConnection(given: object, what: string): ConnectionOptions {
  const checked = checkOptions(given, names, `${what}, an object with the parts of a connection`);
  const { password, ssl, sslmode, sslrootcert } = checked;
  for (const name of ["host", "database", "user", "sslrootcert"] as const) {
    if (checked[name] !== undefined) checkString(checked[name], `${what}.${name}`, { maxBytes: 1_024 });
  }
  if (checked.port !== undefined) checkInteger(checked.port, `${what}.port`, { min: 1, max: 65_535 });
  if (password !== undefined && typeof password !== "string" && typeof password !== "function") {
    throw new InvalidOption(
      `${what}.password must be a string, or a function that returns one or a promise of one`,
    );
  }
  if (ssl !== undefined && typeof ssl !== "boolean" && !isObject(ssl)) {
    throw new InvalidOption(`${what}.ssl must be true, false or options of Node's TLS, not ${show(ssl)}`);
  }
  if (ssl !== undefined && (sslmode !== undefined || sslrootcert !== undefined)) {
    throw new InvalidOption(`${what} has both ssl and sslmode or sslrootcert: leave one of them out`);
  }
  const options = given as ConnectionOptions;
  tlsOptions(options);
  return options;
}

/** The driver's options for a URL or for connection options. */
export function driverOptions(source: string | ConnectionOptions): pgTypes.ClientConfig {
  if (typeof source === "string") {
    const { url, tls } = takeTls(source);
    const ssl = tlsOptions(tls);
    return { connectionString: url, ...(ssl === undefined ? {} : { ssl }) };
  }
  const { sslmode, sslrootcert, ssl = tlsOptions({ sslmode, sslrootcert }), password, ...rest } = source;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return {
    ...given,
    ...(ssl === undefined ? {} : { ssl }),
    ...(password === undefined
      ? {}
      : { password: typeof password === "string" ? password : asking(password) }),
  };
}

/** The password of a new connection. The driver would send anything else than a text as it is. */
function asking(password: () => string | Promise<string>): () => Promise<string> {
  return async () => {
    const given: unknown = await password();
    if (typeof given === "string") return given;
    throw new InvalidOption(
      `the function password must return a string or a promise of one, not ${show(given)}`,
    );
  };
}

interface Place {
  readonly host: string;
  readonly port: number;
  readonly database: string | undefined;
  readonly user: string | undefined;
}

/** The parts of an address that are no secret; null for a pool, which may lead anywhere. */
export function placeOf(source: DatabaseSource): Place | null {
  if (isPool(source)) return null;
  const { host, port, database, user } = new pg.Client(driverOptions(source));
  return { host, port, database, user };
}

const poolNumbers = new WeakMap<PgPool, number>();
let lastPool = 0;

/** A text that two sources share only if they lead to the same database. */
export function sourceKey(source: DatabaseSource): string {
  if (isPool(source)) {
    const number = poolNumbers.get(source) ?? ++lastPool;
    poolNumbers.set(source, number);
    return `pool ${number}`;
  }
  const { host, port, database, user } = placeOf(source)!;
  return JSON.stringify([host, port, database ?? user]);
}
