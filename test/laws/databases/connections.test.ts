/** The ways to a database: your own pool, connection options, passwords that expire, TLS as libpq has it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type ConnectionOptions, type DatabaseSource, job, migrate, serve } from "pawl";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { certificate, type Front, frontOf } from "../../support/proxies/front.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const { pathname, username } = new URL(database.url);
const folder = mkdtempSync(join(tmpdir(), "pawl-tls-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const rootFile = join(folder, "root.crt");
writeFileSync(rootFile, certificate);

const greet = job({ name: "greet", queue: "connections", run: (_ctx, name: string) => `hello ${name}` });
const count = job({
  name: "count",
  queue: "connections",
  run: (ctx) => ctx.transaction(async (tx) => Number((await tx.query("select 41 + 1 as n")).rows[0]!["n"])),
});
const lastBeat = async (): Promise<unknown> =>
  (await sql("select max(seen_at)::text as seen from workers where serves @> array['greet@1']"))[0]!["seen"];

/** A client and a worker there: a run, a transaction, and heartbeats. */
async function works(url: DatabaseSource): Promise<void> {
  await migrate({ url });
  const worker = serve([greet, count], { url, lease: "5m", heartbeat: "50ms", logger: silent });
  await worker.ready;
  const pawl = connect(url);
  try {
    expect(await pawl.result((await pawl.start(greet, "there")).runId)).toBe("hello there");
    expect(await pawl.result((await pawl.start(count, null)).runId)).toBe(42);
    const before = await lastBeat();
    await until("a heartbeat came", async () => (await lastBeat()) !== before);
  } finally {
    await worker.stop();
    await pawl.close();
  }
}

/** The connection options of the database through a front. */
const through = ({ host, port }: Front): ConnectionOptions => ({
  host,
  port,
  user: decodeURIComponent(username),
  database: pathname.slice(1),
});

describe("your own pool", () => {
  it("serves clients, workers, transactions and heartbeats, and gets every connection back", async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 6 });
    await works(pool);
    expect(pool.waitingCount).toBe(0);
    await until("all connections are idle", () => pool.idleCount === pool.totalCount);
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  it("of another copy of the driver has errors that Pawl knows by their SQLSTATE", async () => {
    const pool = {
      query: async () => Promise.reject(foreignError()),
      connect: async () => Promise.reject(foreignError()),
    };
    const pawl = connect(pool);
    await expect(pawl.start("greet", "there")).rejects.toThrow(
      /refused: permission denied\. To let a role use/,
    );
    await pawl.close();
  });
});

const foreignError = (): Error =>
  Object.assign(new Error("permission denied"), { code: "42501", severity: "ERROR" });

describe("connection options", () => {
  it("take a password from a function, which every new connection asks again, also in the heartbeat thread", async () => {
    let valid = 1;
    let asked = 0;
    const front = await frontOf(database.directUrl, { isRight: (password) => password === `token-${valid}` });
    const url = {
      ...through(front),
      password: async () => {
        asked++;
        return `token-${valid}`;
      },
    };
    await works(url);
    expect(asked).toBeGreaterThan(2);
    const worker = serve([greet], { url, lease: "5m", heartbeat: "50ms", logger: silent });
    await worker.ready;
    // The password expires, and all connections are lost.
    valid++;
    front.reset();
    const before = await lastBeat();
    await until("a heartbeat came", async () => (await lastBeat()) !== before);
    await worker.stop();
  });

  it("whose password is wrong say so, and do not repeat it", async () => {
    const front = await frontOf(database.directUrl, { isRight: () => false });
    const failed = migrate({ url: { ...through(front), password: () => "hunter2" } });
    await expect(failed).rejects.toThrow(/Check user and password/);
    await expect(failed).rejects.not.toThrow(/hunter2/);
  });

  it("are checked at the call", () => {
    const wrong = (given: object) => () => connect(given);
    expect(wrong({ hostname: "db" })).toThrow(/unknown option "hostname".*allowed: host, port/);
    expect(wrong({ host: "db", port: "5432" })).toThrow(/url.port must be a whole number/);
    expect(wrong({ host: "db", password: 7 })).toThrow(/url.password must be a string, or a function/);
    expect(wrong({ host: "db", sslmode: "yes" })).toThrow(/sslmode must be one of disable, allow/);
    expect(wrong({ host: "db", ssl: true, sslmode: "require" })).toThrow(/both ssl and sslmode/);
  });
});

describe("TLS", async () => {
  const front = await frontOf(database.directUrl, { tls: true });
  const plain = await frontOf(database.directUrl, {});
  const byAddress = (url: string): string => url.replace("localhost", "127.0.0.1");

  it("sslmode=require encrypts and does not check the certificate, in the heartbeat thread, too", async () => {
    await works(`${front.url}?sslmode=require`);
  });

  it("sslmode=verify-full accepts the certificate of the given CA for its host", async () => {
    await works(`${front.url}?sslmode=verify-full&sslrootcert=${rootFile}`);
    await migrate({ url: { ...through(front), sslmode: "verify-full", sslrootcert: rootFile } });
    await migrate({ url: { ...through(front), ssl: { ca: certificate } } });
  });

  it("sslmode=verify-ca accepts it for any host", async () => {
    await migrate({ url: `${byAddress(front.url)}?sslmode=verify-ca&sslrootcert=${rootFile}` });
  });

  it.each([
    ["a certificate of an unknown CA", `${front.url}?sslmode=verify-full`, /TLS certificate is not trusted/],
    [
      "a certificate for another host",
      `${byAddress(front.url)}?sslmode=verify-full&sslrootcert=${rootFile}`,
      /TLS certificate is for another host/,
    ],
    ["a server without TLS", `${plain.url}?sslmode=require`, /does not offer TLS.*sslmode=disable/],
  ])("says of %s what is wrong", async (_what, url, text) => {
    await expect(migrate({ url })).rejects.toThrow(text);
  });

  it("refuses parameters that it cannot follow, before it connects", () => {
    expect(() => connect("postgres://db/app?sslmode=maybe")).toThrow(/sslmode must be one of/);
    expect(() => connect("postgres://db/app?sslmode=verify-ca")).toThrow(/needs sslrootcert/);
    expect(() => connect("postgres://db/app?sslrootcert=/nowhere.crt")).toThrow(
      /sslrootcert names a file that cannot be read \(ENOENT\)/,
    );
  });
});
