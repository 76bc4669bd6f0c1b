/** The libraries that `pawl.within` works with, each the real one, used the way its users do. */

import { PrismaPg } from "@prisma/adapter-pg";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleNodePostgres } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import knexOf from "knex";
import { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect, sql as kyselySql } from "kysely";
import type { OpenTransaction } from "pawl";
import pg from "pg";
import postgres from "postgres";
import { inject } from "vitest";
import { PrismaClient } from "./prisma.js";

/** Writes a row of the user's own, into public.accounts. */
type Insert = (id: string) => Promise<unknown>;

interface OpenLibrary {
  /** Executes `work` in a transaction; what it throws rolls it back. */
  transaction<T>(work: (tx: OpenTransaction, insert: Insert) => Promise<T>): Promise<T>;
  /** What a user may take for a transaction. */
  readonly outside: unknown;
  close(): Promise<unknown>;
}

export interface Library {
  readonly name: string;
  open(url: string): OpenLibrary;
}

const insertText = "insert into public.accounts (id) values ($1)";

/** A transaction as users of pg write it. */
async function pgTransaction<T>(
  client: pg.Client | pg.PoolClient,
  work: (tx: OpenTransaction, insert: Insert) => Promise<T>,
): Promise<T> {
  await client.query("begin");
  try {
    const result = await work(client, (id) => client.query(insertText, [id]));
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/** postgres.js finds sockets by `path`, not by the query of a URL. */
export function postgresJs(url: string, options: postgres.Options<{}> = {}): postgres.Sql {
  const { host, port, database } = new pg.Client({ connectionString: url });
  const where = host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  // Named statements, its default, belong to one connection of the server.
  const prepare = inject("pooledUrl") === null;
  return postgres({ ...where, database: database!, user: userOf(url), max: 3, prepare, ...options } as never);
}

const userOf = (url: string): string => new pg.Client({ connectionString: url }).user!;

export const libraries: Library[] = [
  {
    name: "a client of pg",
    open: (url) => {
      const client = new pg.Client({ connectionString: url });
      const connecting = client.connect();
      return {
        transaction: async (work) => {
          await connecting;
          return pgTransaction(client, work);
        },
        outside: new pg.Pool({ connectionString: url }),
        close: () => client.end(),
      };
    },
  },
  {
    name: "a pooled client of pg",
    open: (url) => {
      const pool = new pg.Pool({ connectionString: url });
      return {
        transaction: async (work) => {
          const client = await pool.connect();
          try {
            return await pgTransaction(client, work);
          } finally {
            client.release();
          }
        },
        outside: pool,
        close: () => pool.end(),
      };
    },
  },
  {
    name: "postgres.js",
    open: (url) => {
      const sql = postgresJs(url, { transform: postgres.toPascal });
      return {
        transaction: (work) =>
          sql.begin((tx) =>
            work(tx, async (id) => tx`insert into public.accounts (id) values (${id})`),
          ) as never,
        outside: sql,
        close: () => sql.end(),
      };
    },
  },
  {
    name: "Kysely",
    open: (url) => {
      const db = new Kysely<{ accounts: { id: string } }>({
        dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
        plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
      });
      return {
        transaction: (work) =>
          db
            .transaction()
            .execute((trx) =>
              work(trx, (id) => kyselySql`insert into public.accounts (id) values (${id})`.execute(trx)),
            ),
        outside: db,
        close: () => db.destroy(),
      };
    },
  },
  {
    name: "Drizzle on pg",
    open: (url) => {
      const pool = new pg.Pool({ connectionString: url });
      const db = drizzleNodePostgres(pool);
      return {
        transaction: (work) =>
          db.transaction((tx) =>
            work(tx, async (id) => tx.execute(drizzleSql`insert into public.accounts (id) values (${id})`)),
          ),
        outside: db,
        close: () => pool.end(),
      };
    },
  },
  {
    name: "Drizzle on postgres.js",
    open: (url) => {
      const client = postgresJs(url);
      const db = drizzlePostgresJs(client);
      return {
        transaction: (work) =>
          db.transaction((tx) =>
            work(tx, async (id) => tx.execute(drizzleSql`insert into public.accounts (id) values (${id})`)),
          ),
        outside: db,
        close: () => client.end(),
      };
    },
  },
  {
    name: "Knex",
    open: (url) => {
      const knex = knexOf({ client: "pg", connection: url });
      return {
        transaction: (work) =>
          knex.transaction((trx) => work(trx, async (id) => trx("public.accounts").insert({ id }))),
        outside: knex,
        close: () => knex.destroy(),
      };
    },
  },
  {
    name: "Prisma",
    open: (url) => {
      const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
      return {
        transaction: (work) =>
          prisma.$transaction((tx) =>
            work(tx, (id) => tx.$executeRaw`insert into public.accounts (id) values (${id})`),
          ),
        outside: prisma,
        close: () => prisma.$disconnect(),
      };
    },
  },
];
