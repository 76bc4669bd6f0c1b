/**
 * Transactions that user code writes in, on connections of their own: however long they take, the engine's calls never wait
 * for one of them. Opened when the first is asked for. Owned by the store.
 */

import type pg from "pg";
import type { StoreTransaction } from "../store.js";
import { type Address, openPool } from "./database.js";
import { explain, isOutage, sqlState } from "./database-errors.js";

const connections = 10;

/** One open transaction. */
export interface UserTransaction {
  readonly client: pg.PoolClient;
  status: StoreTransaction["status"];
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

export class UserTransactions {
  readonly #address: Address;
  #pool: pg.Pool | undefined;

  constructor(address: Address) {
    this.#address = address;
  }

  async begin(): Promise<UserTransaction> {
    // A user's statement may take as long as it likes.
    this.#pool ??= openPool(this.#address.url, connections, { query_timeout: undefined });
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw explain(error, this.#address);
    }
    // A lost connection is told to whoever has a query in flight; without a listener it would end the process too.
    const ignore = (): void => {};
    client.on("error", ignore);
    const say = async (statement: string): Promise<string> => {
      try {
        return (await client.query(statement)).command;
      } catch (error) {
        if (sqlState(error) !== undefined && !isOutage(error)) throw error;
        throw explain(error, this.#address);
      }
    };
    /** The last statement: then the connection goes back, unless it is lost. */
    const sayLast = async (statement: string): Promise<string> => {
      let isBroken = false;
      try {
        return await say(statement);
      } catch (error) {
        isBroken = isOutage(error);
        throw error;
      } finally {
        client.off("error", ignore);
        client.release(isBroken);
      }
    };
    try {
      await say("begin isolation level read committed");
    } catch (error) {
      client.off("error", ignore);
      client.release(true);
      throw error;
    }
    const statuses = { T: "open", E: "failed", I: "ended" } as const;
    return {
      client,
      status: () => statuses[client.getTransactionStatus() ?? "I"],
      commit: async () => {
        // What fails at the very end is answered as ROLLBACK.
        if ((await sayLast("commit")) !== "COMMIT") throw new Error("the transaction was rolled back");
      },
      rollback: async () => {
        // If the connection is gone, the transaction went with it.
        await sayLast("rollback").catch(() => {});
      },
    };
  }

  async end(): Promise<void> {
    await this.#pool?.end();
  }
}
