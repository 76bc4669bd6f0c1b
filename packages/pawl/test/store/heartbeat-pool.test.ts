import { expect, it } from "vitest";
import { HeartbeatPool } from "../../dist/store/heartbeat-pool.js";
import type { HeartbeatConnection } from "../../dist/store/heartbeats.js";

const timeoutMs = 60_000;

/** A pool whose connections the test opens and breaks. */
function scene() {
  const opened: HeartbeatConnection[] = [];
  const ended: HeartbeatConnection[] = [];
  let refusal: Error | null = null;
  const pool = new HeartbeatPool(async () => {
    if (refusal !== null) throw refusal;
    const connection: HeartbeatConnection = {
      beat: async () => ({
        alive: true,
        cancelled: {},
        held: null,
        databaseHeld: false,
        timeline: null,
        schemaProblem: null,
      }),
      end: async () => void ended.push(connection),
    };
    opened.push(connection);
    return connection;
  });
  const beat = () => pool.use(timeoutMs, (connection) => connection.beat("w", null, timeoutMs));
  return { pool, opened, ended, beat, refuse: (error: Error | null) => (refusal = error) };
}

it("one connection serves all workers that send heartbeats in turn", async () => {
  const { beat, opened } = scene();
  await Promise.all(Array.from({ length: 25 }, beat));
  for (let n = 0; n < 25; n++) await beat();
  expect(opened).toHaveLength(1);
});

it("a heartbeat that hangs delays no other: the pool opens another connection", async () => {
  const { pool, beat, opened } = scene();
  await beat();
  let release = (): void => {};
  const hanging = pool.use(timeoutMs, () => new Promise<void>((resolve) => (release = resolve)));
  await Promise.all(Array.from({ length: 25 }, beat));
  expect(opened).toHaveLength(2);
  release();
  await hanging;
});

it("the pool does not reuse a connection on which a heartbeat failed", async () => {
  const { pool, beat, opened, ended } = scene();
  await expect(pool.use(timeoutMs, () => Promise.reject(new Error("silent")))).rejects.toThrow("silent");
  await beat();
  expect(opened).toHaveLength(2);
  expect(ended).toEqual([opened[0]]);
});

it("after a failed heartbeat the pool closes its idle connections too", async () => {
  const { pool, beat, opened, ended } = scene();
  await beat();
  let release = (): void => {};
  const hanging = pool.use(timeoutMs, () => new Promise<void>((resolve) => (release = resolve)));
  await beat();
  release();
  await hanging;
  expect(opened).toHaveLength(2);
  await expect(pool.use(timeoutMs, () => Promise.reject(new Error("reset")))).rejects.toThrow("reset");
  expect(ended).toHaveLength(2);
  await beat();
  expect(opened).toHaveLength(3);
});

it("a heartbeat fails if no connection can be opened, and the next one opens a connection", async () => {
  const { beat, opened, refuse } = scene();
  refuse(new Error("nobody is there"));
  const tries = await Promise.allSettled(Array.from({ length: 5 }, beat));
  expect(tries.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
  refuse(null);
  await beat();
  expect(opened).toHaveLength(1);
});

it("the end closes all connections, those in use when they are returned", async () => {
  const { pool, beat, opened, ended } = scene();
  await beat();
  let release = (): void => {};
  const late = pool.use(timeoutMs, () => new Promise<void>((resolve) => (release = resolve)));
  await pool.end();
  expect(ended).toHaveLength(0);
  release();
  await late;
  expect(ended).toEqual(opened);
});
