/**
 * Recognises users' open transactions by the shape of their objects, because Pawl depends on none
 * of these libraries. It knows a client of `pg`, and transactions of postgres.js, Kysely, Drizzle,
 * Knex and Prisma. Each becomes a `Caller`, which executes a statement on the connection of that
 * transaction. This file refuses an object that it knows to be outside a transaction, such as a
 * pool. Otherwise only half of the intended transaction would be committed. `within` uses it.
 */

import { InvalidOption } from "../../values/errors.js";
import { className } from "../../values/show.js";

/** A client of `pg`, from a pool or standalone, on which the user has executed `begin`. */
interface PgTransaction {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
  getTransactionStatus?(): string | null;
  once?(event: "drain", listener: () => void): unknown;
  /** Only a pool has this property. */
  readonly totalCount?: undefined;
}

/** The `sql` that `sql.begin` of postgres.js passes to its callback. */
interface PostgresJsTransaction {
  unsafe(text: string, values: (string | null)[]): PromiseLike<readonly unknown[]>;
  savepoint(...given: never[]): unknown;
  /** Only the `sql` outside a transaction has this property. */
  readonly begin?: undefined;
}

/** The `trx` that `db.transaction().execute` or `db.startTransaction()` of Kysely provides. */
interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(query: {
    readonly sql: string;
    readonly parameters: readonly unknown[];
    readonly query: {
      readonly kind: "RawNode";
      readonly sqlFragments: readonly string[];
      readonly parameters: readonly never[];
    };
    readonly queryId: { readonly queryId: string };
  }): Promise<{ readonly rows: readonly unknown[] }>;
}

/** The `tx` that `db.transaction` of Drizzle passes to its callback. */
interface DrizzleTransaction {
  execute(query: unknown): PromiseLike<unknown>;
  rollback(): never;
}

/** The `trx` that `knex.transaction` passes to its callback or returns. */
interface KnexTransaction {
  raw(text: string, values: (string | null)[]): PromiseLike<{ rows: unknown[] }>;
  isCompleted(): boolean;
  readonly executionPromise?: Promise<unknown>;
}

/** The `tx` that `prisma.$transaction(async (tx) => …)` passes to its callback. */
interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
  /** Only the client outside a transaction has this property. */
  readonly $connect?: undefined;
}

/** An open transaction of a library that Pawl can write through. */
export type OpenTransaction =
  | PgTransaction
  | PostgresJsTransaction
  | KyselyTransaction
  | DrizzleTransaction
  | KnexTransaction
  | PrismaTransaction;

/**
 * A statement as the text before, between and after its values. Libraries mark the values
 * differently.
 */
interface Statement {
  readonly fragments: readonly string[];
  readonly values: (string | null)[];
}

export interface Caller {
  /** Executes a statement in the transaction and returns its rows. */
  query(statement: Statement): Promise<readonly unknown[]>;
  /**
   * Calls `tell` when the transaction has ended, if the library reports that. A rollback may have
   * ended it.
   */
  afterEnd(tell: () => void): void;
}

/**
 * Returns the caller for this library's transaction. Refuses any other object and says what to pass
 * instead.
 */
export function recognize(tx: unknown): Caller {
  const given = tx;
  // Check for Prisma first: its client answers to almost every property name.
  if (has(tx, "$queryRawUnsafe")) {
    if (has(tx, "$connect")) throw outside("the Prisma client", "prisma.$transaction(async (tx) => …)", "tx");
    return prisma(given as PrismaTransaction);
  }
  if (has(tx, "raw") && has(tx, "transaction")) {
    if (!has(tx, "isCompleted")) throw outside("Knex", "knex.transaction(async (trx) => …)", "trx");
    return knex(given as KnexTransaction);
  }
  if (has(tx, "executeQuery") && has(tx, "transaction")) {
    const trx = given as KyselyTransaction;
    if (!trx.isTransaction) throw outside("Kysely", "db.transaction().execute(async (trx) => …)", "trx");
    return kysely(trx);
  }
  if (has(tx, "unsafe")) {
    if (has(tx, "begin")) throw outside("postgres.js", "sql.begin(async (sql) => …)", "sql");
    return postgresJs(given as PostgresJsTransaction);
  }
  if (has(tx, "execute") && has(tx, "transaction")) {
    if (!has(tx, "rollback")) throw outside("Drizzle", "db.transaction(async (tx) => …)", "tx");
    return drizzle(given as DrizzleTransaction);
  }
  if (has(tx, "query")) {
    if ("totalCount" in tx) {
      throw new InvalidOption(
        "within was given a pool of pg, which executes each statement on whatever connection is free: " +
          "take a client with pool.connect(), execute begin on it, and give that client",
      );
    }
    return pg(given as PgTransaction);
  }
  throw new InvalidOption(
    "within takes an open transaction: a client of pg on which begin was executed, or what a transaction of " +
      `postgres.js, Kysely, Drizzle, Knex or Prisma passes to its function; not ${describe(tx)}`,
  );
}

function has<Name extends string>(tx: unknown, name: Name): tx is Record<Name, unknown> {
  const isObject = (typeof tx === "object" && tx !== null) || typeof tx === "function";
  return isObject && typeof Reflect.get(tx, name) === "function";
}

function outside(what: string, call: string, name: string): InvalidOption {
  return new InvalidOption(
    `within was given ${what} itself, which is in no transaction: call ${call} and give it that ${name}`,
  );
}

/** Describes the type of the object but never its contents, which may include a password. */
function describe(tx: unknown): string {
  if (tx === null || tx === undefined) return String(tx);
  if (typeof tx !== "object") return `a ${typeof tx}`;
  return `an object of class ${className(tx)}`;
}

const numbered = ({ fragments }: Statement): string =>
  fragments.reduce((text, fragment, index) => `${text}$${index}${fragment}`);

/** For libraries that do not report the end of a transaction. */
const never = (): void => {};

function pg(client: PgTransaction): Caller {
  return {
    query: async (statement) => {
      if (client.getTransactionStatus?.() === "I") {
        throw new InvalidOption(
          'within was given a client of pg that is in no transaction: await client.query("begin") first',
        );
      }
      return (await client.query(numbered(statement), statement.values)).rows;
    },
    afterEnd: (tell) => {
      // The client emits "drain" when it has nothing more to send. If the server is idle then, the
      // transaction has ended.
      const look = (): void => {
        if (client.getTransactionStatus?.() === "I") tell();
        else client.once?.("drain", look);
      };
      if (client.getTransactionStatus !== undefined) client.once?.("drain", look);
    },
  };
}

function postgresJs(sql: PostgresJsTransaction): Caller {
  return { query: async (statement) => sql.unsafe(numbered(statement), statement.values), afterEnd: never };
}

function kysely(trx: KyselyTransaction): Caller {
  return {
    query: async (statement) => {
      const sql = numbered(statement);
      const { rows } = await trx.executeQuery({
        sql,
        parameters: statement.values,
        query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
        queryId: { queryId: "pawl" },
      });
      return rows;
    },
    afterEnd: never,
  };
}

function drizzle(tx: DrizzleTransaction): Caller {
  return {
    query: async (statement) => {
      // Imitates the object that Drizzle's `sql` tag makes, as far as `execute` uses it.
      const query = { sql: numbered(statement), params: statement.values };
      const result = await tx.execute({ getSQL: () => ({ toQuery: () => query }) });
      // Drizzle's drivers differ: postgres.js returns rows, the others return an object with rows.
      return Array.isArray(result) ? result : (result as { rows: unknown[] }).rows;
    },
    afterEnd: never,
  };
}

function knex(trx: KnexTransaction): Caller {
  return {
    query: async ({ fragments, values }) => {
      const escaped = fragments.map((fragment) => fragment.replaceAll("?", "\\?"));
      return (await trx.raw(escaped.join("?"), values)).rows;
    },
    afterEnd: (tell) => void trx.executionPromise?.then(tell, never),
  };
}

function prisma(tx: PrismaTransaction): Caller {
  return {
    query: async (statement) =>
      (await tx.$queryRawUnsafe(numbered(statement), ...statement.values)) as unknown[],
    afterEnd: never,
  };
}
