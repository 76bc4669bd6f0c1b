/**
 * Calls of the SQL functions (`migrations/`): each operation is one call of one function, sent as one unnamed statement, so it
 * works the same behind a pooler in transaction mode. The base of the stores on PostgreSQL.
 */

import type pg from "pg";
import { InvalidOption, KeyConflict } from "../../define/errors.js";
import { type Address, openPool, types } from "./database.js";
import { explain, isRetryable, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";

const retries = 5;

export class PostgresCalls {
  readonly address: Address;
  readonly #pool: pg.Pool;
  readonly #schema: string;

  constructor(address: Address, options: { connections: number; pool?: pg.Pool }) {
    this.address = address;
    this.#pool = options.pool ?? openPool(address.url, options.connections);
    this.#schema = quoteName(address.schema);
  }

  /** Ends the connections once their calls are answered. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Calls one function of the schema; a deadlock or serialization failure has written nothing and is tried again. */
  protected async call<Row>(name: string, values: readonly unknown[]): Promise<Row[]> {
    const text = `select * from ${this.#schema}.${name}(${values.map((_, index) => `$${index + 1}`).join(",")})`;
    for (let attempt = 0; ; attempt++) {
      try {
        const { rows } = await this.#pool.query({ text, values: values as unknown[], types });
        return rows as Row[];
      } catch (error) {
        if (isRetryable(error) && attempt < retries) continue;
        if (sqlState(error) === "PW409") throw new KeyConflict((error as Error).message, { cause: error });
        if (sqlState(error) === "PW422") throw new InvalidOption((error as Error).message, { cause: error });
        throw explain(error, this.address);
      }
    }
  }
}
