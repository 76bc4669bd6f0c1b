/** Counts rows in the tables of a contestant: the proof that the work was done. */

import pg from "pg";

/** A function that runs the query, which gives one number, on a connection of its own. */
export async function rowCounter(url: string, text: string): Promise<() => Promise<number>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return async () => {
    const { rows } = await client.query<{ count: string }>(text);
    return Number(rows[0]!.count);
  };
}
