/**
 * Calls the SQL functions (`schema/`): each operation is one call of one function. On its own
 * connections Pawl prepares each statement once, which saves the server the parsing. A pooler in
 * transaction mode may route each call to another server process, which has nothing prepared.
 * There, and in transactions of others, Pawl sends the statement whole. A call in the name of a
 * token includes its guard (`require_owner`) in the same statement. The stores on PostgreSQL extend
 * this class.
 *
 * The server ends a statement before the driver gives up on it, so no abandoned statement keeps
 * running. Calls that read much (listings, counts, gauges) have a few connections of their own.
 * However slow they are, all other calls find theirs free.
 */

import type pg from "pg";
import { Forbidden, InvalidOption, KeyConflict, PayloadTooLarge } from "../../values/errors.js";
import { type Address, type Connections, openPool, types } from "./database.js";
import { explain, isOutdated, isRetryable, isUnprepared, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { beginBounded, takeSession } from "./pooler.js";

const retries = 5;
/** The server keeps this many characters of a name. */
const longestName = 63;
/** How long the server works on one statement. */
const defaultStatementMs = 25_000;
/** How much longer the driver waits, so that the server's timeout error can arrive. */
const wayMs = 5_000;
/** The number of connections for calls that read much. */
const asideConnections = 3;

interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

type Send = (query: pg.QueryConfig) => Promise<pg.QueryResult>;

export interface CallsOptions {
  readonly connections: number;
  /** The connection of an open transaction, used instead of a new pool. */
  readonly pool?: Connections;
  /** Shares the connections of these calls, and what they know about them. */
  readonly sharing?: PostgresCalls;
  /** How long the server works on one statement. Default 25 s. */
  readonly statementMs?: number;
  /** Makes calls only inside the one transaction with this mark. */
  readonly mark?: string;
}

/** The subjects of a call: the worker that Pawl makes it for, claims, or runs that must be held. */
export interface Guard {
  /** The name of the token that makes the call. */
  readonly owner: string;
  readonly workerId?: string | null | undefined;
  /** Array literals (`column`). */
  readonly runIds?: string | null;
  readonly claimIds?: string | null;
}

export class PostgresCalls {
  readonly address: Address;
  readonly #pool: Connections;
  /** For calls that read much. The first such call opens the pool. */
  readonly #aside: { readonly size: number; pool: Connections | undefined };
  readonly #statementMs: number;
  readonly #schema: string;
  readonly #statements: Map<string, Statement>;
  /** Calls run only inside the one transaction with this mark. */
  readonly #mark: string | undefined;
  /** Whether connections keep their prepared statements, as far as Pawl knows. */
  readonly #prepared: { isKept: boolean | undefined };

  constructor(address: Address, { connections, pool, sharing, statementMs, mark }: CallsOptions) {
    this.address = address;
    this.#mark = mark;
    this.#schema = quoteName(address.schema);
    this.#statementMs = statementMs ?? defaultStatementMs;
    if (sharing !== undefined) {
      this.#statements = sharing.#statements;
      this.#prepared = sharing.#prepared;
      this.#pool = sharing.#pool;
      this.#aside = sharing.#aside;
      return;
    }
    this.#statements = new Map();
    this.#prepared = { isKept: undefined };
    this.#pool = pool ?? this.#open(connections);
    this.#aside = { size: Math.min(asideConnections, connections), pool: undefined };
  }

  /** Ends the connections once the server has answered their calls. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#aside.pool?.end()]);
  }

  /** Resolves if the database answers and has the schema. */
  async ping(): Promise<void> {
    try {
      await this.#pool.query(`select 1 from ${this.#schema}.settings`);
    } catch (error) {
      throw explain(error, this.address);
    }
  }

  /**
   * Calls one function of the schema. Retries after a deadlock or a serialization failure, which
   * have written nothing.
   */
  protected call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    if (this.#mark === undefined) return this.#execute(this.#statement(name, values.length), values);
    return this.#callBehind("require_transaction", [this.#mark], name, values);
  }

  /**
   * Calls a function that reads much, on separate connections. The time limit also holds behind a
   * pooler.
   */
  protected callAside<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    const aside = (this.#aside.pool ??= this.#open(this.#aside.size));
    const send: Send = (query) => this.#readAside(aside, query);
    return this.#execute(this.#statement(name, values.length), values, send);
  }

  /** Calls a function if the token may do so; otherwise throws `Forbidden`. */
  protected callGuarded<Row>(guard: Guard, name: string, values: readonly unknown[]): Promise<Row[]> {
    const { owner, workerId, runIds, claimIds } = guard;
    const checked = [owner, workerId ?? null, runIds ?? null, claimIds ?? null];
    return this.#callBehind("require_owner", checked, name, values);
  }

  /**
   * Sends the call and its guard in one statement. If the guard raises, the call has written
   * nothing.
   */
  #callBehind<Row>(
    guard: string,
    checked: readonly unknown[],
    name: string,
    values: readonly unknown[],
  ): Promise<Row[]> {
    const schema = this.#schema;
    const as = quoteName(name);
    const statement = this.#remember(
      `${schema}.${guard}/${name}(${values.length})`,
      () =>
        `select ${as}.* from ${schema}.${guard}(${parameters(1, checked.length)}) cross join ` +
        `${schema}.${name}(${parameters(checked.length + 1, values.length)}) ${as}`,
    );
    return this.#execute(statement, [...checked, ...values]);
  }

  /** Calls a function with only those runs that workers of this token hold. */
  protected callForOwned<Row>(
    name: string,
    { owner, runIds }: Pick<Guard, "owner" | "runIds">,
  ): Promise<Row[]> {
    const text = `select * from ${this.#schema}.${name}(${this.#schema}.owned_runs($1,$2))`;
    return this.#execute({ text, name: undefined }, [owner, runIds]);
  }

  async #readAside(pool: Connections, query: pg.QueryConfig): Promise<pg.QueryResult> {
    const client = await pool.connect();
    try {
      const isShared = this.#prepared.isKept !== true;
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

  #open(size: number): Connections {
    const prepared = this.#prepared;
    return openPool(this.address.url, size, {
      query_timeout: this.#statementMs + wayMs,
      onConnect: async (client) => {
        const isOwn = await takeSession(client, this.#statementMs);
        prepared.isKept = isOwn && prepared.isKept !== false;
      },
    });
  }

  async #execute<Row>(
    statement: Statement,
    values: readonly unknown[],
    send: Send = (query) => this.#pool.query(query),
  ): Promise<Row[]> {
    let isWhole = false;
    for (let attempt = 0; ; attempt++) {
      const isPrepared = this.#prepared.isKept === true && !isWhole;
      try {
        const query = { text: statement.text, values: values as unknown[], types };
        const { rows } = await send(isPrepared ? { ...query, name: statement.name } : query);
        return rows as Row[];
      } catch (error) {
        if (isPrepared && isUnprepared(error)) {
          this.#prepared.isKept = false;
          continue;
        }
        if (isPrepared && isOutdated(error)) {
          isWhole = true;
          continue;
        }
        // After an error inside a transaction, no further statement can succeed.
        if (isRetryable(error) && attempt < retries && this.#mark === undefined) continue;
        if (sqlState(error) === "PW403") throw new Forbidden((error as Error).message, { cause: error });
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
        if (sqlState(error) === "PW413")
          throw new PayloadTooLarge((error as Error).message, { cause: error });
        if (sqlState(error) === "PW422") throw new InvalidOption((error as Error).message, { cause: error });
        throw explain(error, this.address);
      }
    }
  }

  /**
   * Returns the call of a function. Its name is distinct from all others, because processes may
   * share a server.
   */
  #statement(called: string, count: number): Statement {
    const name = `${this.#schema}.${called}(${count})`;
    return this.#remember(name, () => `select * from ${this.#schema}.${called}(${parameters(1, count)})`);
  }

  #remember(name: string, textOf: () => string): Statement {
    const known = this.#statements.get(name);
    if (known !== undefined) return known;
    const statement = {
      text: textOf(),
      name: Buffer.byteLength(name) > longestName ? undefined : name,
    };
    this.#statements.set(name, statement);
    return statement;
  }
}

/** Returns `$3,$4,$5` for three parameters from the third on. */
function parameters(first: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `$${first + index}`).join(",");
}
