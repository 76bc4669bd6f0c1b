/**
 * The ways in which users say where their database is: a URL, connection options, or a pool of their
 * own. Only types, which need neither the driver's nor Node's.
 */

/** Where the database is, in place of a URL. What is left out is as for `psql`: `PGHOST`, `PGUSER`, … */
export interface ConnectionOptions {
  /** A host, or the folder of a unix socket. Default: `PGHOST`, else localhost. */
  readonly host?: string | undefined;
  /** Default: `PGPORT`, else 5432. */
  readonly port?: number | undefined;
  /** Default: `PGDATABASE`, else the name of the user. */
  readonly database?: string | undefined;
  /** Default: `PGUSER`, else the user of the process. */
  readonly user?: string | undefined;
  /** The password, or a function that Pawl calls for each new connection, as for tokens that expire. */
  readonly password?: string | (() => string | Promise<string>) | undefined;
  /** TLS as in libpq: `verify-full` checks the certificate and its host, `require` only encrypts. */
  readonly sslmode?: TlsMode | undefined;
  /** The file with the certificate of the CA. */
  readonly sslrootcert?: string | undefined;
  /** Options of Node's TLS, in place of `sslmode`: `{ ca: "-----BEGIN CERTIFICATE-----…" }`. */
  readonly ssl?: boolean | object | undefined;
}

/** A pool of `pg`, or of a driver that is compatible with it. Pawl never ends it. */
export interface PgPool {
  connect(): Promise<{
    query(...given: never[]): unknown;
    release(destroy?: boolean): void;
  }>;
  query(...given: never[]): unknown;
}

/** Where the database is: a URL, connection options, or your own pool. */
export type DatabaseSource = string | ConnectionOptions | PgPool;

/** The modes of libpq, and `no-verify`, which is `require` without a look at `sslrootcert`. */
export type TlsMode = "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full" | "no-verify";
