import { existsSync } from "node:fs";
import { describe, expect, inject, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { startPooler } from "../support/proxies/pooler.js";
import { judgeServer } from "../../packages/server/dist/doctor/findings.js";
import { pawl, pawlJson } from "./pawl.js";

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly text: string;
  readonly fix?: string;
}

const bouncer = "/usr/sbin/pgbouncer";
const { url, sql } = await testDatabase();
const [{ name: database }] = (await sql<{ name: string }>("select current_database() as name")) as [
  { name: string },
];
const findings = async (...args: string[]): Promise<Finding[]> =>
  (await pawlJson<{ findings: Finding[] }>(["doctor", ...args], { url })).findings;

describe("pawl doctor finds", () => {
  it("a database that cannot be reached", async () => {
    const { code, stdout } = await pawl(["doctor"], { url: "postgres://127.0.0.1:1/app" });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^wrong {2}connection {2}the database cannot be used: .* \(database 127\.0\.0\.1:1\/app\)\n +fix: check host, port/,
    );
  });

  it("a schema that is missing", async () => {
    const { code, stdout } = await pawl(["doctor", "--schema", "other"], { url });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^wrong {2}schema +the database has no schema "other".*\n +fix: run: pawl migrate/m,
    );
  });

  it("settings that break Pawl, of the database or of its tables", async () => {
    await sql(`alter database ${database} set default_transaction_isolation = 'serializable'`);
    await sql(`alter database ${database} set synchronous_commit = off`);
    await sql("alter table runs set (autovacuum_enabled = false)");
    const found = await findings();
    expect(found.find(({ check }) => check === "isolation")).toMatchObject({
      level: "wrong",
      text: "default_transaction_isolation is serializable: Pawl refuses every call",
    });
    expect(found.filter(({ check }) => check === "durability").map(({ level }) => level)).toContain("note");
    expect(found.find(({ check }) => check === "autovacuum")).toMatchObject({
      level: "wrong",
      text: "autovacuum is off for the table runs",
      fix: "alter table runs reset (autovacuum_enabled)",
    });
  });

  it.skipIf(!existsSync(bouncer))("a pooler, and that its mode is one that Pawl can use", async () => {
    const pooler = await startPooler(bouncer, inject("databaseUrl"));
    try {
      const { stdout } = await pawl(["doctor"], { url: pooler.through(url) });
      expect(stdout).toMatch(/^ok {5}pooler +a pooler in transaction mode, which Pawl supports$/m);
    } finally {
      await pooler.stop();
    }
  });

  it("nothing over HTTP: it needs the database itself", async () => {
    const { code, stderr } = await pawl(["doctor"], { url: "http://127.0.0.1:1" });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^pawl: .*postgres:\/\/.*\n$/);
  });
});

describe("of what no test can provoke, pawl doctor says", () => {
  const healthy = {
    versionNumber: 180_004,
    version: "18.4",
    isStandby: false,
    roundTripMs: 1,
    skewMs: 3,
    skewErrorMs: 1,
    settings: {
      autovacuum: "on",
      default_transaction_isolation: "read committed",
      fsync: "on",
      max_connections: "100",
      superuser_reserved_connections: "3",
    },
    connections: 5,
    seesSessions: true,
    transactions: [],
    prepared: [],
    slots: [],
  };
  const wrong = (...given: Partial<Parameters<typeof judgeServer>>): string[] =>
    judgeServer({ ...healthy, ...given[0] }, given[1] ?? "none", 60_000)
      .filter(({ level }) => level === "wrong")
      .map(({ check, fix }) => `${check}: ${fix}`);

  it("nothing when all is well", () => {
    expect(wrong()).toEqual([]);
    expect(wrong(healthy, "transaction")).toEqual([]);
  });

  it.each([
    [{ versionNumber: 140_010, version: "14.10" }, /^version: upgrade/],
    [{ isStandby: true }, /^writable: use the URL of the primary/],
    [{ skewMs: -5_000 }, /^clock: .*NTP/],
    [{ connections: 95 }, /^connections: raise max_connections/],
    [{ settings: { ...healthy.settings, fsync: "off" } }, /^durability: set fsync = on/],
    [{ prepared: [{ id: "p1", ageMs: 90_000 }] }, /^prepared: .*rollback prepared 'p1'/],
    [
      { slots: [{ name: "s1", isActive: false, xminAge: null, keptWalBytes: 2 ** 31 }] },
      /^replication slots: .*pg_drop_replication_slot\('s1'\)/,
    ],
  ])("how to put %j right", (facts, text) => {
    expect(wrong({ ...healthy, ...facts })).toEqual([expect.stringMatching(text)]);
  });

  it("what to do about a pooler in statement mode", () => {
    expect(wrong(healthy, "statement")).toEqual([
      "pooler: set pool_mode = transaction for this database in the pooler",
    ]);
  });
});
