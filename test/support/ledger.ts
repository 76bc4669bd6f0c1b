/** A table of the user's that transactions of steps write into, with a constraint that only the commit checks. */

import type { Transaction } from "pawl";
import type { TestDatabase } from "./database.js";

export async function makeLedger({ sql }: Pick<TestDatabase, "sql">) {
  await sql("create table public.ledger (who text, n int unique deferrable initially deferred)");
  let last = 0;
  return {
    /** A number that nobody has written. */
    number: (): number => ++last,
    write: (tx: Transaction, who: string, n: number) =>
      tx.query("insert into public.ledger (who, n) values ($1, $2)", [who, n]),
    written: async (who: string): Promise<number[]> => {
      const rows = await sql<{ n: number }>("select n from public.ledger where who = $1 order by n", [who]);
      return rows.map(({ n }) => n);
    },
  };
}
