/**
 * Transactions that user code writes in, on connections of their own: however long they take, the
 * engine's calls never wait for one of them. Opened when the first is asked for. A statement of the
 * user's may take as long as it likes; those that Pawl sends here (begin, the outcome, commit,
 * rollback) have a time limit, because a connection may be silent without being closed. Owned by
 * the store.
 */

import type { Duplex } from "node:stream";
import type pg from "pg";
import { InvalidOption, InvalidOutcome } from "../../values/errors.js";
import type { Transaction } from "../../define/transaction.js";
import type { StoreTransaction } from "../store.js";
import { type Address, openPool, types } from "./database.js";
import { explain, isOutage, isUsersAtCommit, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";

const connections = 10;
/** How long Pawl waits for the answer to a statement of its own. */
const ownMs = 10_000;

/**
 * Undoes what a transaction may have left in its session. Sent with its last statement: behind a pooler the next one would perhaps be
 * on another connection of the server.
 */
const tidy = "reset session authorization; reset all; select pg_advisory_unlock_all(); unlisten *; close all";

/** One open transaction. */
export interface UserTransaction {
  /** For the engine's own statements: within their time limit. */
  readonly pool: Pick<pg.Pool, "query">;
  /** Tells this transaction from any other (SQL `transaction_mark`). */
  readonly mark: string;
  /** For the user's: of no use any more once the transaction has ended. */
  readonly tx: Transaction;
  /** Writes the outcome by such a statement. Throws what the step did wrong, or `Unavailable`. */
  readonly write: <T>(call: () => Promise<T>) => Promise<T>;
  isLost: StoreTransaction["isLost"];
  hasSettings: StoreTransaction["hasSettings"];
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** What steps do wrong in a transaction. */
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

  /** The server has ended it, because of how long it took. */
  get isItsFault(): boolean {
    return this.#isItsFault;
  }
}

/** The client as user code gets it: the same object, until its transaction has ended. */
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

/** Ends a connection at once, also one that does not answer. */
function destroy(client: pg.PoolClient): void {
  // Not a part of its types.
  const inner: unknown = client;
  (inner as { readonly connection: { readonly stream: Duplex } }).connection.stream.destroy();
}

export class UserTransactions {
  readonly #address: Address;
  /** Ends the connection of each that is open. */
  readonly #open = new Set<() => void>();
  #pool: pg.Pool | undefined;

  constructor(address: Address) {
    this.#address = address;
  }

  /** Throws `Unavailable` if the database cannot, or will not, begin one. */
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
    /**
     * A statement of Pawl's own. Whatever has no answer of the server leaves a connection that
     * nobody can use.
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
     * The last statement: then the connection goes back, tidied up, unless something went wrong.
     * Answers its command.
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
        // What fails at the very end is answered as ROLLBACK.
        if (command !== "COMMIT") throw new InvalidOutcome("the transaction was rolled back");
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

  /**
   * Ends all connections, also those of transactions that are still open: nobody will commit them.
   */
  async end(): Promise<void> {
    for (const end of this.#open) end();
    await this.#pool?.end();
  }
}
