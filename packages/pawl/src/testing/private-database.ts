/**
 * The private database of one test, copied from the template of its server, and the connections of
 * the test. At least one connection stays open, so that other processes see that the database is in
 * use. Made and closed by `test-pawl.ts`.
 */

import { randomBytes } from "node:crypto";
import pg from "../store/driver/driver.js";
import { connectionOptions, types } from "../store/postgres/database.js";
import { explain, isOutage } from "../store/postgres/database-errors.js";
import { quoteName } from "../store/postgres/literals.js";
import { databaseName, forgetServer, schema, type TestServer, testServer } from "./server.js";

export interface PrivateDatabase {
  readonly url: string;
  /** Runs a statement that returns one JSON value. */
  ask<Answer>(text: string, values?: readonly unknown[]): Promise<Answer>;
  /** Drops the database and closes all connections to it. */
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

/** Copies the template. If the local server has ended since its last use, starts it again. */
async function create(url: string | undefined, name: string): Promise<TestServer> {
  for (let isFirst = true; ; isFirst = false) {
    const server = await testServer(url);
    try {
      await server.admin.query(`create database ${quoteName(name)} template ${quoteName(server.template)}`);
      // In a small database the JIT compiler takes longer than the queries.
      await server.admin.query(`alter database ${quoteName(name)} set jit = off`);
      return server;
    } catch (error) {
      // 3D000: the template does not exist: somebody deleted the data of the server.
      const isGone = isOutage(error) || (error as { code?: unknown }).code === "3D000";
      if (!isFirst || !isGone) throw explain(error, { url: server.urlOf(name), schema });
      forgetServer(url);
    }
  }
}
