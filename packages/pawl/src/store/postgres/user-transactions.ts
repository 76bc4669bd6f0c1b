/**
 * Transactions that user code writes in, on connections of their own. However long they take, the
 * engine's calls never wait for one of them. The first request opens the pool. A user's statement
 * may take any time. Pawl's own statements here (begin, the outcome, commit, rollback) have a time
 * limit, because a connection may be silent without being closed. The store owns this pool.
 */

import type { Duplex } from "node:stream";
import type pg from "pg";
import { InvalidOption, InvalidOutcome } from "../../values/errors.js";
import type { Transaction } from "../../define/transaction.js";
import type { StoreTransaction } from "../store.js";
import { type Address, type Connections, openPool, types } from "./database.js";
import { explain, isOutage, isUsersAtCommit, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";

const connections = 10;
/** How long Pawl waits for the answer to a statement of its own. */
const ownMs = 10_000;

/**
 * Undoes the changes that a transaction may have left in its session. Pawl sends it with the last
 * statement: behind a pooler, the next statement might use another server connection.
 */
const tidy = "reset session authorization; reset all; select pg_advisory_unlock_all(); unlisten *; close all";

/** One open transaction. */
export interface UserTransaction {
  /** For the engine's own statements, with their time limit. */
  readonly pool: Pick<pg.Pool, "query">;
  /** Distinguishes this transaction from any other (SQL `transaction_mark`). */
  readonly mark: string;
  /** For the user's statements. It accepts none once the transaction has ended. */
  readonly tx: Transaction;
  /**
   * Writes the outcome by such a statement. Throws the mistake that the step made, or
   * `Unavailable`.
   */
  readonly write: <T>(call: () => Promise<T>) => Promise<T>;
  isLost: StoreTransaction["isLost"];
  hasSettings: StoreTransaction["hasSettings"];
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** Mistakes that steps make in a transaction. */
const problems = {
  ended: "the transaction was ended by the step itself; leave its end to Pawl",
  replaced:
    "the transaction was ended by the step itself, which has begun another one: by commit or rollback, or by either of them with " +
    "`and chain`. The outcome of the step is not recorded; what its SQL has committed itself stays. Leave the end to Pawl: to undo " +
    "a part, use savepoint and rollback to savepoint; to undo all of it, throw",
  tooLong:
    "the server has ended the transaction, because it was idle or open for longer than its settings allow " +
    "(idle_in_transaction_session_timeout, transaction_timeout)",
  failed:
    "a statement in the transaction failed, and its error was not thrown on: nothing of it can be committed",
};

/**
 * Whether a transaction was lost with its connection through no fault of its own. It is at fault if
 * the server ended it for being idle, or open, too long.
 */
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

  /** The server ended the transaction because it took too long. */
  get isItsFault(): boolean {
    return this.#isItsFault;
  }
}

/** Returns the client that user code gets: the same object, until its transaction has ended. */
function usersClient(client: pg.PoolClient, onFailed: (error: unknown) => void) {
  let isOver = false;
  let queries = 0;
  let hasSettings = false;
  const ask = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
  const query = async (...given: unknown[]): Promise<unknown> => {
    if (isOver)
      throw new InvalidOption("the transaction of this step has ended: it takes no more statements");
    queries++;
    try {
      const answer = await ask(...given);
      const results = [answer].flat() as ({ command?: unknown } | undefined)[];
      hasSettings ||= results.some((result) => result?.command === "SET");
      return answer;
    } catch (error) {
      if (sqlState(error) !== undefined) onFailed(error);
      throw error;
    } finally {
      queries--;
    }
  };
  const tx: unknown = new Proxy(client, {
    get: (target, name) => {
      if (name === "query") return query;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    tx: tx as Transaction,
    end: () => void (isOver = true),
    isBusy: () => queries > 0,
    hasSettings: () => hasSettings,
  };
}

/** Ends a connection at once, even one that does not answer. */
function destroy(client: pg.PoolClient): void {
  // The types of `pg` do not include this property, and the driver of a user's pool may lack it.
  const inner: unknown = client;
  (inner as { readonly connection?: { readonly stream?: Partial<Duplex> } }).connection?.stream?.destroy?.();
}

export class UserTransactions {
  readonly #address: Address;
  /** Each function ends the connection of one open transaction. */
  readonly #open = new Set<() => void>();
  #pool: Connections | undefined;

  constructor(address: Address) {
    this.#address = address;
  }

  /** Throws `Unavailable` if the database cannot, or will not, begin a transaction. */
  async begin(): Promise<UserTransaction> {
    // A user's statement may take any time.
    this.#pool ??= openPool(this.#address.url, connections, { query_timeout: undefined });
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw explain(error, this.#address);
    }
    // The query in flight reports a lost connection. Without a listener, the loss would also end
    // the process.
    const loss = new Loss();
    const lose = (error: unknown): void => loss.hear(error);
    client.on("error", lose);
    /**
     * Sends a statement of Pawl's own. If the server does not answer it, nobody can use the
     * connection again.
     */
    const say = async (query: pg.QueryConfig): Promise<pg.QueryResult | pg.QueryResult[]> => {
      try {
        return await client.query({ ...query, query_timeout: ownMs } as pg.QueryConfig);
      } catch (error) {
        if (sqlState(error) === undefined) destroy(client);
        throw error;
      }
    };
    const end = (): void => {
      destroy(client);
      giveBack(true);
    };
    this.#open.add(end);
    const giveBack = (isBroken: boolean): void => {
      if (!this.#open.delete(end)) return;
      client.off("error", lose);
      client.release(isBroken);
    };
    /**
     * Sends the last statement and returns its command. Then it returns the connection, tidied up,
     * to the pool, unless something went wrong.
     */
    const sayLast = async (statement: string): Promise<string> => {
      try {
        const [result] = [await say({ text: `${statement};${tidy}` })].flat();
        giveBack(false);
        return result!.command;
      } catch (error) {
        giveBack(true);
        throw error;
      }
    };
    let mark: string;
    try {
      const text = `begin isolation level read committed;select ${quoteName(this.#address.schema)}.transaction_mark() as mark`;
      const results = [await say({ text, types })].flat();
      mark = (results[1]!.rows[0] as { mark: string }).mark;
    } catch (error) {
      giveBack(true);
      throw explain(error, this.#address);
    }
    const users = usersClient(client, lose);
    const write = async <T>(call: () => Promise<T>): Promise<T> => {
      const status = client.getTransactionStatus();
      if (status === "E") throw new InvalidOutcome(problems.failed);
      if (status === "I") throw new InvalidOutcome(problems.ended);
      try {
        return await call();
      } catch (error) {
        if (loss.isItsFault) throw new InvalidOutcome(problems.tooLong, { cause: error });
        const code = sqlState((error as { cause?: unknown }).cause);
        if (code === "PW412") throw new InvalidOutcome(problems.replaced);
        // The driver learns that a transaction has failed a moment after the statement's own error.
        if (code === "25P02") throw new InvalidOutcome(problems.failed, { cause: error });
        throw error;
      }
    };
    const pool: unknown = { query: say };
    return {
      pool: pool as Pick<pg.Pool, "query">,
      mark,
      tx: users.tx,
      write,
      isLost: () => loss.isLost,
      hasSettings: () => users.hasSettings(),
      commit: async () => {
        users.end();
        let command: string;
        try {
          command = await sayLast("commit");
        } catch (error) {
          throw isUsersAtCommit(error) ? error : explain(error, this.#address);
        }
        // If the transaction fails at the very end, the server answers ROLLBACK.
        if (command !== "COMMIT") throw new InvalidOutcome("the transaction was rolled back");
      },
      rollback: async () => {
        users.end();
        // A user's statement still runs: only the end of the connection ends it.
        if (users.isBusy()) giveBack(true);
        // If the connection is gone, the transaction went with it.
        else await sayLast("rollback").catch(lose);
      },
    };
  }

  /** Ends all connections, including those of open transactions: nobody will commit them. */
  async end(): Promise<void> {
    for (const end of this.#open) end();
    await this.#pool?.end();
  }
}
