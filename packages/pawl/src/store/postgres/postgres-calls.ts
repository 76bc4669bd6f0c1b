/**
 * Calls of the SQL functions (`migrations/`): each operation is one call of one function. On connections of its own the statement is
 * prepared once, which saves the server the parsing; a pooler in transaction mode may lead each call to another server process, where
 * nothing is prepared, so there (and in transactions of others) it is sent whole. The base of the stores on PostgreSQL.
 */

import type pg from "pg";
import { InvalidOption, KeyConflict } from "../../define/errors.js";
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

export class PostgresCalls {
  readonly address: Address;
  readonly #pool: Pick<pg.Pool, "query" | "end">;
  readonly #schema: string;
  readonly #statements = new Map<string, Statement>();
  /** Calls are made inside the one transaction with this mark. */
  readonly #mark: string | undefined;
  /** Whether connections keep what was prepared on them, as far as is known. */
  #keepsPrepared: boolean | undefined;

  constructor(address: Address, options: { connections: number; pool?: pg.Pool; mark?: string }) {
    this.address = address;
    this.#mark = options.mark;
    this.#pool =
      options.pool ??
      openPool(address.url, options.connections, {
        onConnect: async (client) => {
          const isOwn = !(await isPooled(client));
          this.#keepsPrepared = isOwn && this.#keepsPrepared !== false;
        },
      });
    this.#schema = quoteName(address.schema);
  }

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  protected async call<Row>(name: string, given: readonly unknown[]): Promise<Row[]> {
    const statement = this.#statement(name, given.length);
    const values = this.#mark === undefined ? given : [...given, this.#mark];
    let isWhole = false;
    for (let attempt = 0; ; attempt++) {
      const isPrepared = this.#keepsPrepared === true && !isWhole;
      try {
        const query = { text: statement.text, values: values as unknown[], types };
        const { rows } = await this.#pool.query(isPrepared ? { ...query, name: statement.name } : query);
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
        // Inside a transaction nothing more can be done after an error.
        if (isRetryable(error) && attempt < retries && this.#mark === undefined) continue;
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
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
    const [shard, ...others] = Array.from({ length: count }, (_, index) => `$${index + 1}`);
    const statement = {
      text:
        this.#mark === undefined
          ? `select * from ${this.#schema}.${called}(${[shard, ...others].join(",")})`
          : `select "${called}".* from ${this.#schema}.require_transaction(${shard}, $${count + 1}) t(shard), ` +
            `lateral ${this.#schema}.${called}(${["t.shard", ...others].join(",")}) "${called}"`,
      name: Buffer.byteLength(name) > longestName ? undefined : name,
    };
    this.#statements.set(name, statement);
    return statement;
  }
}
