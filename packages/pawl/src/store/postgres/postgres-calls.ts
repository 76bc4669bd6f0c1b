/**
 * Calls of the SQL functions (`schema/`): each operation is one call of one function. On connections of its own the statement is
 * prepared once, which saves the server the parsing; a pooler in transaction mode may lead each call to another server process, where
 * nothing is prepared, so there (and in transactions of others) it is sent whole. A call in the name of a token is guarded in the same
 * statement (`require_owner`). The base of the stores on PostgreSQL.
 *
 * The server ends a statement before the driver gives up on it, so that no abandoned one goes on. Calls that read much (listings,
 * counts, gauges) have a few connections of their own: however slow they are, all other calls find theirs free.
 */

import type pg from "pg";
import { Forbidden, InvalidOption, KeyConflict, PayloadTooLarge } from "../../values/errors.js";
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

interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

type Send = (query: pg.QueryConfig) => Promise<pg.QueryResult>;

export interface CallsOptions {
  readonly connections: number;
  /** The connection of an open transaction, used instead. */
  readonly pool?: pg.Pool;
  /** Uses the connections of these calls, and what is known of them. */
  readonly sharing?: PostgresCalls;
  /** How long the server works on one statement. Default 25 s. */
  readonly statementMs?: number;
  /** Calls are made inside the one transaction with this mark, and nowhere else. */
  readonly mark?: string;
}

/** What a call concerns: the worker that it is made for, claims, or runs that must be held. */
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
  readonly #pool: pg.Pool;
  /** For calls that read much; opened by the first of them. */
  readonly #aside: { readonly size: number; pool: pg.Pool | undefined };
  readonly #statementMs: number;
  readonly #schema: string;
  readonly #statements: Map<string, Statement>;
  /** Calls are made inside the one transaction with this mark. */
  readonly #mark: string | undefined;
  /** Whether connections keep what was prepared on them, as far as is known. */
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

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#aside.pool?.end()]);
  }

  /** Resolves if the database answers, and has the schema. */
  async ping(): Promise<void> {
    try {
      await this.#pool.query(`select 1 from ${this.#schema}.settings`);
    } catch (error) {
      throw explain(error, this.address);
    }
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  protected call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    if (this.#mark === undefined) return this.#execute(this.#statement(name, values.length), values);
    return this.#callBehind("require_transaction", [this.#mark], name, values);
  }

  /** The same for a function that reads much, on connections of its own, and within its time also behind a pooler. */
  protected callAside<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    const aside = (this.#aside.pool ??= this.#open(this.#aside.size));
    const send: Send = (query) => this.#readAside(aside, query);
    return this.#execute(this.#statement(name, values.length), values, send);
  }

  /** The same, if the token may do that; else throws `Forbidden`. */
  protected callGuarded<Row>(guard: Guard, name: string, values: readonly unknown[]): Promise<Row[]> {
    const { owner, workerId, runIds, claimIds } = guard;
    const checked = [owner, workerId ?? null, runIds ?? null, claimIds ?? null];
    return this.#callBehind("require_owner", checked, name, values);
  }

  /** A call in one statement with its guard: if the guard raises, the call has written nothing. */
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

  /** Calls a function with those of the runs alone that workers of this token hold. */
  protected callForOwned<Row>(
    name: string,
    { owner, runIds }: Pick<Guard, "owner" | "runIds">,
  ): Promise<Row[]> {
    const text = `select * from ${this.#schema}.${name}(${this.#schema}.owned_runs($1,$2))`;
    return this.#execute({ text, name: undefined }, [owner, runIds]);
  }

  async #readAside(pool: pg.Pool, query: pg.QueryConfig): Promise<pg.QueryResult> {
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

  #open(size: number): pg.Pool {
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
        // Inside a transaction nothing more can be done after an error.
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

  /** The call of a function. Its name tells it from all others, because processes may share a server. */
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

/** `$3,$4,$5` for three parameters from the third on. */
function parameters(first: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `$${first + index}`).join(",");
}
