import { randomBytes } from "node:crypto";
import { connect, fork, job, machine, serve, signal, type, workflow } from "pawl";
import pg from "pg";
import { afterAll, describe, expect, inject, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent, testEngine } from "../support/engine.js";
import { gate } from "../support/gate.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { url, sql } = database;

/** A name for a copy, which is dropped at the end. */
function copyName(): string {
  const name = `pawl_copy_${randomBytes(6).toString("hex")}`;
  afterAll(async () => {
    const admin = new pg.Client({ connectionString: inject("databaseUrl") });
    await admin.connect();
    await admin.query(`drop database if exists "${name}" with (force)`);
    await admin.end();
  });
  return name;
}

describe("fork", () => {
  it("works", async () => {
    const made = await fork({ url, name: copyName() });
    console.info(made);
  });
});
