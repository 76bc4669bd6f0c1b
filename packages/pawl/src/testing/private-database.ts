/**
 * A database for one test alone, copied from the template of its server, and the test's own connections to it. At least one of them is
 * open as long as it lives: by that other processes see that it is in use. Made and closed by `test-pawl.ts`.
 */

import { randomBytes } from "node:crypto";
import pg from "pg";
import { connectionOptions, types } from "../store/postgres/database.js";
import { explain, isOutage } from "../store/postgres/database-errors.js";
import { quoteName } from "../store/postgres/literals.js";
import { databaseName, forgetServer, schema, type TestServer, testServer } from "./server.js";

export interface PrivateDatabase {
  readonly url: string;
  /** Runs a statement that answers with one JSON value. */
  ask<Answer>(text: string, values?: readonly unknown[]): Promise<Answer>;
  /** Drops it, whoever is still connected. */
  drop(): Promise<void>;
}

export async function privateDatabase(url: string | undefined): Promise<PrivateDatabase> {
  const name = databaseName(randomBytes(5).toString("hex"));
  const server = await create(url, name);
  const address = { url: server.urlOf(name), schema };
  const pool = new pg.Pool({
    ...connectionOptions(address.url),
    application_name: "pawl/testing",
    max: 2,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  });
  pool.on("error", () => {});
  return {
    url: address.url,
    ask: async <Answer>(text: string, values: readonly unknown[] = []) => {
      try {
        const { rows } = await pool.query({ text, values: [...values], types });
        return JSON.parse((rows as { answer: string }[])[0]!.answer) as Answer;
      } catch (error) {
        throw explain(error, address);
      }
    },
    drop: async () => {
      await pool.end();
      await server.admin.query(`drop database if exists ${quoteName(name)} with (force)`);
    },
  };
}

/** Copies the template. A local server may have ended since it was last used: then it is started again. */
async function create(url: string | undefined, name: string): Promise<TestServer> {
  for (let isFirst = true; ; isFirst = false) {
    const server = await testServer(url);
    try {
      await server.admin.query(`create database ${quoteName(name)} template ${quoteName(server.template)}`);
      // It would take longer to compile what a test looks for than to find it.
      await server.admin.query(`alter database ${quoteName(name)} set jit = off`);
      return server;
    } catch (error) {
      // 3D000: the template is gone, because the data of the server were deleted.
      const isGone = isOutage(error) || (error as { code?: unknown }).code === "3D000";
      if (!isFirst || !isGone) throw explain(error, { url: server.urlOf(name), schema });
      forgetServer(url);
    }
  }
}
