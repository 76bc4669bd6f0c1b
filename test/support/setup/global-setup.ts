/**
 * One server for all test files: `PAWL_TEST_DATABASE_URL`, or a throw-away local Postgres. A migrated template
 * database is made once; each file copies it (`support/database.ts`).
 */

import { startLocalPostgres } from "@pawl/local-postgres";
import { migrate } from "pawl";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { findPooler, startPooler } from "../proxies/pooler.js";

declare module "vitest" {
  interface ProvidedContext {
    /** A server on which databases may be created. */
    databaseUrl: string;
    /** The name of a database with a migrated schema, to copy. */
    templateName: string;
    /** The same through a pooler, if clients and workers are to use one. */
    pooledUrl: string | null;
    /** A role that owns nothing, if clients and workers are to use one (the project "granted"). Its password is its name. */
    grantedRole: string | null;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env["PAWL_TEST_DATABASE_URL"];
  const local = given === undefined ? await startLocalPostgres({ settings: { max_connections: 300 } }) : null;
  const url = given ?? local!.url;
  const templateName = `pawl_template_${process.pid}`;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(`create database ${templateName}`);
  const template = new URL(url);
  template.pathname = `/${templateName}`;
  const role = project.name === "granted" ? `pawl_granted_${process.pid}` : undefined;
  if (role !== undefined) await admin.query(`create role ${role} login password '${role}'`);
  await migrate({ url: template.href, grant: role });
  if (role !== undefined) await openTables(template.href, role);
  project.provide("grantedRole", role ?? null);
  project.provide("databaseUrl", url);
  project.provide("templateName", templateName);
  const pooler = project.name === "pgbouncer" ? await startPooler(findPooler() ?? "pgbouncer", url) : null;
  project.provide("pooledUrl", pooler?.through(url) ?? null);
  return async () => {
    await pooler?.stop();
    await admin.query(`drop database if exists ${templateName}`);
    if (role !== undefined) await admin.query(`drop role ${role}`);
    await admin.end();
    await local?.stop();
  };
}

/** The tables that tests make for their own SQL are the application's, and its role may use them. */
async function openTables(url: string, role: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`alter default privileges grant all on tables to ${role}`);
  await client.query(`alter default privileges grant all on sequences to ${role}`);
  await client.end();
}
