/** The store with the parts of `recover` as calls of their own: a law about one of them must not do the others. */

import { PostgresStore } from "../../packages/pawl/dist/store/postgres/postgres-store.js";

export class TestStore extends PostgresStore {
  /** Answers how many claims have ended. */
  async reap(limit: number): Promise<number> {
    const [row] = await this.call<{ reaped: number }>("reap", [limit]);
    return row!.reaped;
  }

  /** Answers the queues that got work. */
  async place(limit: number): Promise<string[]> {
    const [row] = await this.call<{ queues: string }>("place_runs", [limit]);
    return JSON.parse(row!.queues) as string[];
  }

  /** Answers where it stopped, and the queues that got work. */
  async repairKeys(after: string | null, limit: number): Promise<{ last: string | null; queues: string[] }> {
    const values = [after, limit];
    const [row] = await this.call<{ last: string | null; queues: string }>("repair_keys", values);
    return { last: row!.last, queues: JSON.parse(row!.queues) as string[] };
  }
}
