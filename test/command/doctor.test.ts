import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, job, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { until } from "../support/until.js";
import { pawl, pawlJson } from "./pawl.js";

interface Finding {
  readonly check: string;
  readonly level: "ok" | "note" | "wrong";
  readonly text: string;
  readonly fix?: string;
}

const database = await testDatabase();
const { url, sql } = database;
const client = connect(url);
afterAll(() => client.close());

/** What is wrong, by what was looked at. */
async function wrongs(...args: string[]): Promise<Record<string, Finding>> {
  const { findings } = await pawlJson<{ findings: Finding[] }>(["doctor", ...args], { url });
  return Object.fromEntries(findings.filter(({ level }) => level === "wrong").map((one) => [one.check, one]));
}

describe("pawl doctor", () => {
  it("finds nothing wrong with a healthy database, and lists what it looked at", async () => {
    const { code, stdout, stderr } = await pawl(["doctor", "--patience", "10m"], { url });
    expect([code, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.at(-1)).toBe("nothing is wrong");
    const checks = lines.slice(0, -1).map((line) => line.split(/\s{2,}/));
    expect(checks.map(([level]) => level)).not.toContain("wrong");
    expect(new Set(checks.map(([, check]) => check))).toEqual(
      new Set(
        (
          "connection, version, writable, clock, pooler, connections, durability, isolation, transactions, prepared, " +
          "replication slots, schema, identity, autovacuum, workers, definitions, set aside, partition keys, schedules, pauses, due runs, limits, bulk"
        ).split(", "),
      ),
    );
  });

  it("finds an old open transaction, and how to end it", async () => {
    const other = await database.connect();
    await other.query("set application_name = 'forgetful'");
    await other.query("begin");
    const { rows } = await other.query<{ pid: number }>("select pg_backend_pid() as pid");
    const { pid } = rows[0]!;
    const found = await until(
      "the transaction is old",
      async () => (await wrongs("--patience", "1ms"))["transactions"],
    );
    expect(found.text).toMatch(
      new RegExp(`^process ${pid} \\(forgetful, \\w+\\) is idle in transaction for `),
    );
    expect(found.fix).toContain(`select pg_terminate_backend(${pid})`);
    await other.query("rollback");
    expect((await wrongs("--patience", "1ms"))["transactions"]?.text ?? "").not.toContain(`process ${pid} `);
  });

  it("finds a definition that nobody serves, and ends with 1", async () => {
    const { runId } = await client.start("nobody-serves-this");
    const { code, stdout } = await pawl(["doctor", "--patience", "10m"], { url });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^wrong {2}definitions +1 run of nobody-serves-this@1 waits, for up to .*\n +fix: start a worker that serves nobody-serves-this@1, or/m,
    );
    expect(stdout).toMatch(/\n1 thing is wrong\n$/);
    await client.runs.cancel(runId);
  });

  it(
    "finds a dead worker with its claims, the key that it blocks and the run that is late",
    { timeout: 120_000 },
    async () => {
      const held = await client.start("hold", null, { partitionKey: "k" });
      const blocked = await client.start("hold", null, { partitionKey: "k" });
      const worker = fork(fileURLToPath(new URL("../dist/command/holding-worker.js", import.meta.url)), [
        url,
      ]);
      try {
        await until("it executes", async () => (await client.runs.get(held.runId)).phase === "executing");
        await until("the other is blocked", async () => {
          const [row] = await sql<{ hold: number }>("select hold from runs where id = $1", [blocked.runId]);
          return row?.hold === 1;
        });
        expect(await wrongs("--patience", "10m")).toEqual({});
      } finally {
        worker.kill("SIGKILL");
        await once(worker, "exit");
      }
      const found = await until("it is dead", async () => {
        const all = await wrongs("--patience", "10m");
        return all["workers"] === undefined ? null : all;
      });
      expect(found["workers"]?.text).toMatch(/^worker .* sent its last heartbeat .* ago and holds 1 run$/);
      expect(found["workers"]?.fix).toBe("start a worker: it reclaims these runs");
      expect(found["partition keys"]?.text).toBe(
        `1 run waits for the key "k", held by run ${held.runId} of a dead worker`,
      );
      await client.runs.cancel(held.runId);
      await client.runs.cancel(blocked.runId);
    },
  );

  it("finds nothing wrong with a line whose first run can be claimed", async () => {
    const hold = job({ name: "hold", run: (_ctx, _n: number) => null });
    const started = await client.startMany(
      hold,
      [1, 2, 3].map((input) => ({ input, partitionKey: "line" })),
    );
    expect((await wrongs("--patience", "10m"))["partition keys"]).toBeUndefined();
    for (const { runId } of started) await client.runs.cancel(runId);
  });

  it("finds a schedule that nobody serves, and one whose last run failed", async () => {
    const failing = job({ name: "failing", maxAttempts: 1, run: () => Promise.reject(new Error("no disk")) });
    await client.schedules.set("orphan", { every: "1d", start: "nobody-serves-that" });
    expect((await wrongs())["schedules"]).toMatchObject({
      text: "schedule orphan: no live worker serves nobody-serves-that: its runs wait until you start one",
      fix: expect.stringContaining("pawl schedules show orphan"),
    });
    await client.schedules.remove("orphan");
    const worker = serve([failing], { url });
    await worker.ready;
    await client.schedules.set("nightly", { every: "1d", start: failing });
    const { runId } = await client.schedules.trigger("nightly");
    await expect(client.result(runId)).rejects.toThrow("no disk");
    expect((await wrongs())["schedules"]?.text).toBe(
      `schedule nightly: its last run ${runId} failed: no disk`,
    );
    await client.schedules.pause("nightly");
    expect((await wrongs())["schedules"]).toBeUndefined();
    await client.schedules.remove("nightly");
    await worker.stop();
  });

  it("finds a run that is due for long on a served queue", async () => {
    const busy = job({ name: "busy", run: (ctx) => once(ctx.signal, "abort").then(() => null) });
    const worker = serve([busy], { url, queues: { default: 1 } });
    const first = await client.start(busy);
    await until("it executes", async () => (await client.runs.get(first.runId)).phase === "executing");
    const second = await client.start(busy);
    const found = await until("it is late", async () => (await wrongs("--patience", "1ms"))["due runs"]);
    expect(found.text).toMatch(
      new RegExp(`^run ${second.runId} of busy@1 has been due for .* on queue "default"$`),
    );
    expect(found.fix).toContain(`pawl runs why ${second.runId}`);
    await client.runs.cancel(second.runId);
    await client.runs.cancel(first.runId);
    await worker.stop();
  });
});
