/**
 * Calls of the SQL functions (`migrations/`): each operation is one call of one function. On connections of its own the statement is
 * prepared once, which saves the server the parsing; a pooler in transaction mode may lead each call to another server process, where
 * nothing is prepared, so there (and in transactions of others) it is sent whole. A call in the name of a token is guarded in the same
 * statement (`owned_shard`). The base of the stores on PostgreSQL.
 */

import type pg from "pg";
import { Forbidden, InvalidOption, KeyConflict } from "../../define/errors.js";
import { type Address, openPool, types } from "./database.js";
import { explain, isOutdated, isRetryable, isUnprepared, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { isPooled } from "./pooler.js";

const retries = 5;
/** What the server keeps of a name. */
const longestName = 63;

interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

export interface CallsOptions {
  readonly connections: number;
  readonly pool?: pg.Pool;
  /** Uses the connections of these calls, and what is known of them. */
  readonly sharing?: PostgresCalls;
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
  readonly #schema: string;
  readonly #statements: Map<string, Statement>;
  /** Whether connections keep what was prepared on them, as far as is known. */
  readonly #prepared: { isKept: boolean | undefined };

  constructor(address: Address, { connections, pool, sharing }: CallsOptions) {
    this.address = address;
    this.#schema = quoteName(address.schema);
    if (sharing !== undefined) {
      this.#statements = sharing.#statements;
      this.#prepared = sharing.#prepared;
      this.#pool = sharing.#pool;
      return;
    }
    this.#statements = new Map();
    const prepared: { isKept: boolean | undefined } = { isKept: undefined };
    this.#prepared = prepared;
    this.#pool =
      pool ??
      openPool(address.url, connections, {
        onConnect: async (client) => {
          const isOwn = !(await isPooled(client));
          prepared.isKept = isOwn && prepared.isKept !== false;
        },
      });
  }

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  protected call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#execute(this.#statement(name, values.length), values);
  }

  /** The same for a function whose first argument is the shard, if the token may do that; else throws `Forbidden`. */
  protected callGuarded<Row>(guard: Guard, name: string, values: readonly unknown[]): Promise<Row[]> {
    const { owner, workerId, runIds, claimIds } = guard;
    const [shard, ...rest] = values;
    const checked = [shard, owner, workerId ?? null, runIds ?? null, claimIds ?? null];
    return this.#execute(this.#guardedStatement(name, rest.length, checked.length), [...checked, ...rest]);
  }

  /** Calls a function with those of the runs alone that workers of this token hold. */
  protected callForOwned<Row>(
    name: string,
    shard: number,
    { owner, runIds }: Pick<Guard, "owner" | "runIds">,
  ): Promise<Row[]> {
    const text = `select * from ${this.#schema}.${name}($1,${this.#schema}.owned_runs($1,$2,$3))`;
    return this.#execute({ text, name: undefined }, [shard, owner, runIds]);
  }

  async #execute<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    let isWhole = false;
    for (let attempt = 0; ; attempt++) {
      const isPrepared = this.#prepared.isKept === true && !isWhole;
      try {
        const query = { text: statement.text, values: values as unknown[], types };
        const { rows } = await this.#pool.query(isPrepared ? { ...query, name: statement.name } : query);
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
        if (isRetryable(error) && attempt < retries) continue;
        if (sqlState(error) === "PW403") throw new Forbidden((error as Error).message, { cause: error });
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
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

  /** The call takes its shard from the guard, and so cannot begin before the guard has answered. */
  #guardedStatement(called: string, count: number, checked: number): Statement {
    const schema = this.#schema;
    const as = quoteName(called);
    return this.#remember(
      `${schema}.owned_${called}(${count})`,
      () =>
        `select ${as}.* from ${schema}.owned_shard(${parameters(1, checked)}) o(shard) ` +
        `cross join lateral ${schema}.${called}(${["o.shard", parameters(checked + 1, count)].filter(Boolean).join(",")}) ${as}`,
    );
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
