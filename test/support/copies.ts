/** Copies of databases, each with a client and workers of its own, dropped when the test that made them has ended. */

import { randomBytes } from "node:crypto";
import {
  type AnyDefinition,
  connect,
  fork,
  type ForkOptions,
  type Forked,
  type Pawl,
  serve,
  type ServeOptions,
  type Worker,
} from "pawl";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { databaseOf } from "./database.js";
import { silent } from "./engine.js";

export interface Side {
  readonly pawl: Pawl;
  serve(definitions: readonly AnyDefinition[], options?: ServeOptions): Promise<Worker>;
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** A name for a copy. */
export function copyName(): string {
  const name = `pawl_copy_${randomBytes(6).toString("hex")}`;
  onTestFinished(() => onServer(`drop database if exists "${name}" with (force)`).then(() => {}));
  return name;
}

/** The same database on the server itself, if this URL leads through a pooler. */
export function directly(url: string): string {
  return inject("pooledUrl") === null
    ? url
    : databaseOf(inject("databaseUrl"), new URL(url).pathname.slice(1));
}

/** Copies a database. On the server itself: through a pooler none is. The copy is then used as the original is. */
export async function copyOf(url: string, options: Omit<ForkOptions, "url">): Promise<Forked> {
  const made = await fork({ ...options, url: directly(url) });
  return { ...made, url: databaseOf(url, made.name) };
}

/** Runs SQL beside the databases of the tests. */
export async function onServer<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: inject("databaseUrl") });
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** One side of a fork: everything is opened anew, and ended with the test. */
export function sideOf(url: string): Side {
  const pawl = connect(url);
  const pool = new pg.Pool({ connectionString: directly(url), max: 2, options: "-c search_path=pawl" });
  pool.on("error", () => {});
  const workers: Worker[] = [];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await pawl.close();
    await pool.end();
  });
  return {
    pawl,
    serve: async (definitions, options) => {
      const worker = serve(definitions, {
        url,
        lease: "20s",
        heartbeat: "300ms",
        reapInterval: "100ms",
        drainTimeout: "1s",
        logger: silent,
        ...options,
      });
      workers.push(worker);
      await worker.ready;
      return worker;
    },
    sql: async <Row>(text: string, values: unknown[] = []) => (await pool.query(text, values)).rows as Row[],
  };
}
