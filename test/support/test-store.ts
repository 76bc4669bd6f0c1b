/** The store with the parts of `recover` as calls of their own: a law about one of them must not do the others. */

import { PostgresStore } from "../../packages/pawl/dist/store/postgres/postgres-store.js";

const shard = 0;

export class TestStore extends PostgresStore {
  /** Answers how many claims have ended. */
  async reap(limit: number): Promise<number> {
    const [row] = await this.call<{ reaped: number }>("reap", [shard, limit]);
    return row!.reaped;
  }

  /** Answers the queues that got work. */
  async place(limit: number): Promise<string[]> {
    const [row] = await this.call<{ queues: string }>("place_runs", [shard, limit]);
    return JSON.parse(row!.queues) as string[];
  }

  /** Answers where it stopped, and the queues that got work. */
  async repairKeys(after: string | null, limit: number): Promise<{ last: string | null; queues: string[] }> {
    const values = [shard, after, limit];
    const [row] = await this.call<{ last: string | null; queues: string }>("repair_keys", values);
    return { last: row!.last, queues: JSON.parse(row!.queues) as string[] };
  }
}
