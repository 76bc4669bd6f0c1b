/** What may be given to `within`, and what it gives back. Compiled, never run. */

import type { drizzle } from "drizzle-orm/node-postgres";
import type { Knex } from "knex";
import type { ControlledTransaction, Kysely, Transaction } from "kysely";
import { connect, job, machine, type RunId, signal, type Started, type, type Within } from "pawl";
import type pg from "pg";
import type { Sql, TransactionSql } from "postgres";
import type { PrismaClient } from "../../support/libraries/prisma.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(): T | undefined => undefined;

type Database = ReturnType<typeof drizzle>;
interface Tables {
  readonly accounts: { readonly id: string };
}

const pawl = connect();
const double = job({ name: "double", input: type<{ n: number }>(), run: (_ctx, input) => input.n * 2 });
const payment = machine({
  name: "payment",
  state: type<{ id: string }>(),
  signals: { paid: signal<{ amount: number }>() },
  steps: { start: (ctx) => ctx.awaitSignal("paid", "end", ctx.state), end: (ctx) => ctx.done() },
});

export function transactions(
  client: pg.Client,
  pooled: pg.PoolClient,
  either: pg.ClientBase,
  sql: TransactionSql,
  kysely: Transaction<Tables>,
  controlled: ControlledTransaction<Tables>,
  drizzleTx: Parameters<Parameters<Database["transaction"]>[0]>[0],
  knex: Knex.Transaction,
  prisma: Parameters<Parameters<PrismaClient["$transaction"]>[0]>[0],
): Within[] {
  return [
    pawl.within(client),
    pawl.within(pooled),
    pawl.within(either),
    pawl.within(sql),
    pawl.within(kysely),
    pawl.within(controlled),
    pawl.within(drizzleTx),
    pawl.within(knex),
    pawl.within(prisma),
  ];
}

export function noTransactions(
  pool: pg.Pool,
  sql: Sql,
  kysely: Kysely<Tables>,
  db: Database,
  knex: Knex,
  prisma: PrismaClient,
): void {
  // @ts-expect-error a pool
  pawl.within(pool);
  // @ts-expect-error postgres.js itself
  pawl.within(sql);
  // @ts-expect-error Kysely itself
  pawl.within(kysely);
  // @ts-expect-error Drizzle itself
  pawl.within(db);
  // @ts-expect-error Knex itself
  pawl.within(knex);
  // @ts-expect-error Prisma itself
  pawl.within(prisma);
  // @ts-expect-error a URL
  pawl.within("postgres://localhost");
  // @ts-expect-error nothing
  pawl.within();
}

export async function calls(tx: pg.Client): Promise<void> {
  const within = pawl.within(tx);
  same<Equal<Within["start"], (typeof pawl)["start"]>>();
  same<Equal<Within["startMany"], (typeof pawl)["startMany"]>>();
  same<Equal<Within["signal"], (typeof pawl)["signal"]>>();

  const one = await within.start(double, { n: 1 }, { delay: "5m" });
  same<Equal<typeof one, Started<typeof double>>>();
  same<Equal<typeof one.runId, RunId<typeof double>>>();
  const waiting = await within.start(payment, { id: "p" });
  await within.signal(waiting.runId, "paid", { amount: 1 }, { dedupKey: "once" });
  await within.startMany(double, [{ input: { n: 1 }, uniqueKey: "k" }]);
  await within.start("by-name");

  // @ts-expect-error wrong input
  await within.start(double, { n: "1" });
  // @ts-expect-error input is missing
  await within.start(double);
  // @ts-expect-error unknown option
  await within.start(double, { n: 1 }, { dely: "5m" });
  // @ts-expect-error wrong input of an item
  await within.startMany(double, [{ input: { m: 1 } }]);
  // @ts-expect-error no such signal
  await within.signal(waiting.runId, "payed", { amount: 1 });
  // @ts-expect-error wrong payload
  await within.signal(waiting.runId, "paid", { amount: "1" });
  // @ts-expect-error results are not to be had before the commit
  await within.result(one.runId);
}
