import { randomBytes } from "node:crypto";
import { machine } from "pawl";
import { describe, expect, it } from "vitest";
import type { ClaimedRun, StoredSignal } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { claim, claimOne, endRunsAfterEach, register, signal, start } from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

const mebibyte = 1_048_576;
/** A payload of so many bytes that cannot be compressed. */
const dense = (bytes: number): string =>
  randomBytes(Math.ceil(bytes * 0.75))
    .toString("base64")
    .slice(0, bytes);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Puts signals into the inboxes of runs, as if they had been sent: name "a", payload their number and some text. */
async function fill(runIds: readonly string[], count: number, text = ""): Promise<void> {
  await sql(
    `insert into signals (run_id, seq, name, payload, inserted_at)
     select r, n, 'a', jsonb_build_object('n', n, 'text', $3::text), clock_timestamp()
     from unnest($1::bigint[]) r, generate_series(1, $2::int) n`,
    [runIds, count, text],
  );
  await sql("update runs set inbox_seq = $2 where id = any ($1)", [runIds, count]);
}

/** Reads an inbox as a worker does, and how long each page was. */
async function read(run: ClaimedRun): Promise<{ signals: StoredSignal[]; pages: number[] }> {
  const signals: StoredSignal[] = [];
  const pages: number[] = [];
  for (;;) {
    const page = await store.inbox(run.runId, { after: signals.at(-1)?.seq ?? 0, upTo: run.inboxSeq });
    if (page.length === 0) return { signals, pages };
    signals.push(...page);
    pages.push(page.length);
  }
}

const bytesOf = (runs: readonly ClaimedRun[]): number =>
  runs.reduce((sum, { inbox }) => sum + (inbox === null ? 0 : JSON.stringify(inbox).length), 0);

describe("an inbox", () => {
  it("of up to 1,000 small signals comes along with the claim", async () => {
    const [runId] = await start(database, {});
    await fill([runId!], 1_000);
    const { inbox } = await claimOne(database);
    expect(inbox!.map(({ seq }) => seq)).toEqual(upTo(1_000));
    expect(inbox![6]).toMatchObject({ seq: 7, name: "a", payload: { n: 7, text: "" }, matched: false });
    expect(inbox![6]!.receivedAt).toBeInstanceOf(Date);
  });

  it("of more is read page by page, in order and complete", async () => {
    const [runId] = await start(database, {});
    await fill([runId!], 2_500);
    await sql("delete from signals where run_id = $1 and seq between 900 and 1100", [runId]);
    const run = await claimOne(database);
    expect(run.inbox).toBeNull();
    const { signals, pages } = await read(run);
    expect(signals.map(({ seq }) => seq)).toEqual(upTo(2_500).filter((n) => n < 900 || n > 1_100));
    expect(signals.every(({ seq, payload }) => (payload as { n: number }).n === seq)).toBe(true);
    expect(Math.max(...pages)).toBeLessThanOrEqual(1_000);
  });

  it("of several mebibytes is read in pages of about one, each of at least one signal", async () => {
    const [runId] = await start(database, {});
    await fill([runId!], 12, dense(400_000));
    await signal(database, runId!, "big", { payload: JSON.stringify(dense(mebibyte - 2)) });
    await signal(database, runId!, "big", { payload: JSON.stringify(dense(mebibyte - 2)) });
    const run = await claimOne(database);
    expect(run.inbox).toBeNull();
    const { signals, pages } = await read(run);
    expect(signals.map(({ seq }) => seq)).toEqual(upTo(14));
    expect(pages).toEqual([2, 2, 2, 2, 2, 2, 1, 1]);
  });

  it("is read as of the claim: what arrives meanwhile stays out, what was consumed is gone", async () => {
    const [runId] = await start(database, {});
    await fill([runId!], 1_200);
    const run = await claimOne(database);
    await signal(database, runId!, "late");
    await sql("update signals set consumed_at = clock_timestamp() where run_id = $1 and seq = 5", [runId]);
    const { signals } = await read(run);
    expect(signals.map(({ seq }) => seq)).toEqual(upTo(1_200).filter((n) => n !== 5));
  });

  it("of each of 500 runs comes along with one claim", async () => {
    const runIds = await start(database, ...Array.from({ length: 500 }, () => ({})));
    await fill(runIds, 3, dense(1_000));
    const { runs } = await claim(database, { limit: 500 });
    expect(runs.map(({ runId }) => runId)).toEqual(runIds);
    for (const { inbox } of runs) expect(inbox!.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  it("of many runs makes no claim longer than 16 MiB", async () => {
    const runIds = await start(database, ...Array.from({ length: 500 }, () => ({})));
    await fill(runIds, 2, dense(60_000));
    const { runs } = await claim(database, { limit: 500 });
    expect(runs).toHaveLength(500);
    expect(bytesOf(runs)).toBeLessThanOrEqual(16 * mebibyte);
    expect((await read(runs.find(({ inbox }) => inbox === null)!)).signals).toHaveLength(2);
  });

  it("of many runs makes no claim longer than 16 MiB, however well its payloads compress", async () => {
    const runIds = await start(database, ...Array.from({ length: 40 }, () => ({})));
    await fill(runIds, 1, "x".repeat(mebibyte - 100));
    const { runs } = await claim(database, { limit: 100 });
    expect(bytesOf(runs)).toBeLessThanOrEqual(16 * mebibyte);
  });
});

describe("a step", () => {
  const seen: { inbox: number[]; awaited: number[]; text: number }[] = [];
  const large = machine({
    name: "large",
    steps: {
      start: (ctx) => ctx.awaitSignal("a", "woken", ctx.state),
      woken: (ctx) => {
        const numbers = (from: typeof ctx.inbox): number[] =>
          from.map(({ payload }) => (payload as { n: number }).n);
        const text = ctx.inbox.reduce(
          (sum, { payload }) => sum + (payload as { text: string }).text.length,
          0,
        );
        seen.push({ inbox: numbers(ctx.inbox), awaited: numbers(ctx.awaited), text });
        return ctx.next("after", ctx.state);
      },
      after: (ctx) => ctx.done(ctx.inbox.length),
    },
  });

  it.each([
    ["3,500 signals", 3_500, 10],
    ["7 MB", 20, 350_000],
    ["10,000 signals of 1 kB", 10_000, 1_000],
  ])("sees an inbox of %s complete and in order, and consumes it", async (_what, count, length) => {
    const { runId } = await pawl.start(large, {}, { delay: "1h" });
    await fill([runId], count, dense(length));
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    const worker = await serve([large]);
    expect(await pawl.result(runId)).toBe(0);
    await worker.stop();
    expect(seen.pop()).toEqual({ inbox: upTo(count), awaited: upTo(count), text: count * length });
  });

  it("that gathers thousands one by one runs once for each wake", async () => {
    let executions = 0;
    const gathering = machine({
      name: "gathering",
      steps: {
        start: (ctx) => {
          executions++;
          return ctx.awaited.length < 3_002 ? ctx.awaitSignal("a", "start", ctx.state) : ctx.done(executions);
        },
      },
    });
    const { runId } = await pawl.start(gathering, {}, { delay: "1h" });
    await fill([runId], 3_000, "");
    await sql("update runs set eligible_at = clock_timestamp() where id = $1", [runId]);
    await serve([gathering]);
    for (const count of [2, 3]) {
      await until(`it waits after ${count} executions`, async () => {
        return executions === count && (await pawl.runs.get(runId)).phase === "awaiting_signal";
      });
      await pawl.signal(runId, "a");
    }
    expect(await pawl.result(runId)).toBe(4);
  });
});
