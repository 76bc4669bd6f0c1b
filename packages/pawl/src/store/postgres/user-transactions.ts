/**
 * Transactions that user code writes in, on connections of their own: however long they take, the engine's calls never wait
 * for one of them. Opened when the first is asked for. Owned by the store.
 */

import type pg from "pg";
import { InvalidOption, InvalidOutcome } from "../../define/errors.js";
import type { Transaction } from "../../define/transaction.js";
import type { StoreTransaction } from "../store.js";
import { type Address, openPool } from "./database.js";
import { explain, isOutage, sqlState } from "./database-errors.js";

const connections = 10;

/**
 * Undoes what a transaction may have left in its session. Sent with its last statement: behind a pooler the next one would perhaps be
 * on another connection of the server.
 */
const tidy = "reset session authorization; reset all; select pg_advisory_unlock_all(); unlisten *; close all";

/** One open transaction. */
export interface UserTransaction {
  /** For the engine's own statements. */
  readonly client: pg.PoolClient;
  /** For the user's: of no use any more once the transaction has ended. */
  readonly tx: Transaction;
  status: StoreTransaction["status"];
  isLost: StoreTransaction["isLost"];
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** Whether a transaction went away with its connection, and not by its own fault: the server ends what was idle, or open, for too long. */
class Loss {
  #hasGone = false;
  #isItsFault = false;

  hear(error: unknown): void {
    const code = sqlState(error);
    if (code === "25P03" || code === "25P04") this.#isItsFault = true;
    else if (code === undefined ? isOutage(error) : /^(08|57P)/.test(code)) this.#hasGone = true;
  }

  get isLost(): boolean {
    return this.#hasGone && !this.#isItsFault;
  }
}

/** The client as user code gets it: the same object, until its transaction has ended. */
function usersClient(client: pg.PoolClient, onFailed: (error: unknown) => void) {
  let isOver = false;
  let queries = 0;
  const ask = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
  const query = async (...given: unknown[]): Promise<unknown> => {
    if (isOver)
      throw new InvalidOption("the transaction of this step has ended: it takes no more statements");
    queries++;
    try {
      return await ask(...given);
    } catch (error) {
      if (sqlState(error) !== undefined) onFailed(error);
      throw error;
    } finally {
      queries--;
    }
  };
  const tx = new Proxy(client, {
    get: (target, name) => {
      if (name === "query") return query;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { tx: tx as unknown as Transaction, end: () => void (isOver = true), isBusy: () => queries > 0 };
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
    const loss = new Loss();
    const lose = (error: unknown): void => loss.hear(error);
    client.on("error", lose);
    /** Answers the command of the first statement. */
    const say = async (statements: string): Promise<string> => {
      try {
        const results = (await client.query(statements)) as pg.QueryResult | [pg.QueryResult];
        return (Array.isArray(results) ? results[0] : results).command;
      } catch (error) {
        if (sqlState(error) !== undefined && !isOutage(error)) throw error;
        throw explain(error, this.#address);
      }
    };
    const giveBack = (isBroken: boolean): void => {
      client.off("error", lose);
      client.release(isBroken);
    };
    /** The last statement: then the connection goes back, tidied up, unless something went wrong. */
    const sayLast = async (statement: string): Promise<string> => {
      try {
        const command = await say(`${statement};${tidy}`);
        giveBack(false);
        return command;
      } catch (error) {
        giveBack(true);
        throw error;
      }
    };
    try {
      await say("begin isolation level read committed");
    } catch (error) {
      giveBack(true);
      throw error;
    }
    const users = usersClient(client, lose);
    const statuses = { T: "open", E: "failed", I: "ended" } as const;
    return {
      client,
      tx: users.tx,
      status: () => statuses[client.getTransactionStatus() ?? "I"],
      isLost: () => loss.isLost,
      commit: async () => {
        users.end();
        // What fails at the very end is answered as ROLLBACK.
        if ((await sayLast("commit")) !== "COMMIT")
          throw new InvalidOutcome("the transaction was rolled back");
      },
      rollback: async () => {
        users.end();
        // A statement of the user's still runs: only the end of the connection ends it.
        if (users.isBusy()) giveBack(true);
        // If the connection is gone, the transaction went with it.
        else await sayLast("rollback").catch(lose);
      },
    };
  }

  async end(): Promise<void> {
    await this.#pool?.end();
  }
}
