/**
 * Calls of the SQL functions (`migrations/`): each operation is one call of one function. On connections of its own the statement is
 * prepared once, which saves the server the parsing; a pooler in transaction mode may lead each call to another server process, where
 * nothing is prepared, so there (and in transactions of others) it is sent whole. The base of the stores on PostgreSQL.
 *
 * The server ends a statement before the driver gives up on it, so that no abandoned one goes on. Calls that read much (listings,
 * counts, gauges) have a few connections of their own: however slow they are, all other calls find theirs free.
 */

import type pg from "pg";
import { InvalidOption, KeyConflict, PayloadTooLarge } from "../../define/errors.js";
import { type Address, openPool, types } from "./database.js";
import { explain, isOutdated, isRetryable, isUnprepared, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { beginBounded, takeSession } from "./pooler.js";

const retries = 5;
/** What the server keeps of a name. */
const longestName = 63;
/** How long the server works on one statement. */
const defaultStatementMs = 25_000;
/** How much longer the driver waits: the answer that it took too long is on its way. */
const wayMs = 5_000;
/** How many connections there are for calls that read much. */
const asideConnections = 3;

export interface CallsOptions {
  readonly connections: number;
  /** The connection of an open transaction, used instead. */
  readonly pool?: pg.Pool;
  /** How long the server works on one statement. Default 25 s. */
  readonly statementMs?: number;
}

interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

export class PostgresCalls {
  readonly address: Address;
  readonly #pool: pg.Pool;
  readonly #asideSize: number;
  #aside: pg.Pool | undefined;
  readonly #statementMs: number;
  readonly #schema: string;
  readonly #statements = new Map<string, Statement>();
  /** Whether connections keep what was prepared on them, as far as is known. */
  #keepsPrepared: boolean | undefined;

  constructor(address: Address, options: CallsOptions) {
    this.address = address;
    this.#statementMs = options.statementMs ?? defaultStatementMs;
    this.#pool = options.pool ?? this.#open(options.connections);
    this.#asideSize = Math.min(asideConnections, options.connections);
    this.#schema = quoteName(address.schema);
  }

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#aside?.end()]);
  }

  /** Resolves if the database answers. */
  async ping(): Promise<void> {
    try {
      await this.#pool.query("select 1");
    } catch (error) {
      throw explain(error, this.address);
    }
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  protected call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#call(name, values, (query) => this.#pool.query(query));
  }

  /** The same for a function that reads much, on connections of its own, and within its time also behind a pooler. */
  protected callAside<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    this.#aside ??= this.#open(this.#asideSize);
    return this.#call(name, values, (query) => this.#readAside(this.#aside!, query));
  }

  async #readAside(pool: pg.Pool, query: pg.QueryConfig): Promise<pg.QueryResult> {
    const client = await pool.connect();
    try {
      const isShared = this.#keepsPrepared !== true;
      if (isShared) await beginBounded(client, this.#statementMs);
      const result = await client.query(query);
      if (isShared) await client.query("commit");
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  #open(size: number): pg.Pool {
    return openPool(this.address.url, size, {
      query_timeout: this.#statementMs + wayMs,
      onConnect: async (client) => {
        const isOwn = await takeSession(client, this.#statementMs);
        this.#keepsPrepared = isOwn && this.#keepsPrepared !== false;
      },
    });
  }

  async #call<Row>(
    name: string,
    values: readonly unknown[],
    send: (query: pg.QueryConfig) => Promise<pg.QueryResult>,
  ): Promise<Row[]> {
    const statement = this.#statement(name, values.length);
    let isWhole = false;
    for (let attempt = 0; ; attempt++) {
      const isPrepared = this.#keepsPrepared === true && !isWhole;
      try {
        const query = { text: statement.text, values: values as unknown[], types };
        const { rows } = await send(isPrepared ? { ...query, name: statement.name } : query);
        return rows as Row[];
      } catch (error) {
        if (isPrepared && isUnprepared(error)) {
          this.#keepsPrepared = false;
          continue;
        }
        if (isPrepared && isOutdated(error)) {
          isWhole = true;
          continue;
        }
        if (isRetryable(error) && attempt < retries) continue;
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
        if (sqlState(error) === "PW413")
          throw new PayloadTooLarge((error as Error).message, { cause: error });
        if (sqlState(error) === "PW422") throw new InvalidOption((error as Error).message, { cause: error });
        throw explain(error, this.address);
      }
    }
  }

  /** The call of a function. Its name tells it from all others, because processes may share a server. */
  #statement(called: string, count: number): Statement {
    const name = `${this.#schema}.${called}(${count})`;
    const known = this.#statements.get(name);
    if (known !== undefined) return known;
    const parameters = Array.from({ length: count }, (_, index) => `$${index + 1}`);
    const statement = {
      text: `select * from ${this.#schema}.${called}(${parameters.join(",")})`,
      name: Buffer.byteLength(name) > longestName ? undefined : name,
    };
    this.#statements.set(name, statement);
    return statement;
  }
}
