import { connect, machine, type } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

interface Row {
  readonly seq: number;
  readonly name: string;
  readonly payload: unknown;
  readonly dedup_key: string | null;
}
const rowsOf = (runId: string): Promise<Row[]> =>
  sql("select seq, name, payload, dedup_key from signals where run_id = $1 order by seq", [runId]);
const payloadsOf = async (runId: string): Promise<unknown[]> =>
  (await rowsOf(runId)).map(({ payload }) => payload);

/** Consumes what it gets by "go" and waits again, until "end". */
const consuming = machine({
  name: "consuming",
  state: type<{ n: number }>(),
  steps: {
    start: (ctx) => ctx.awaitSignal(["go", "end"], "woken", ctx.state),
    woken: (ctx) =>
      ctx.awaited.some(({ name }) => name === "end")
        ? ctx.done(ctx.state.n)
        : ctx.next("start", { n: ctx.state.n + ctx.awaited.length }),
  },
});
await serve([consuming]);
const started = async (): Promise<string> => (await pawl.start(consuming, { n: 0 })).runId;
/** A run that no worker touches. */
const untouched = async (): Promise<string> => (await pawl.start("nobody-serves-this", {})).runId;
const consumed = (runId: string, n: number): Promise<unknown> =>
  until(`${n} are consumed`, async () => {
    const { state, phase } = await pawl.runs.get(runId);
    return (state as { n: number } | null)?.n === n && phase === "awaiting_signal";
  });

describe("a dedup key", () => {
  it("makes redelivery a no-op before consumption, whatever the second one says", async () => {
    const runId = await untouched();
    expect(await pawl.signal(runId, "go", { n: 1 }, { dedupKey: "k" })).toEqual({ delivered: true });
    expect(await pawl.signal(runId, "go", { n: 2 }, { dedupKey: "k" })).toEqual({ delivered: false });
    expect(await pawl.signal(runId, "other", { n: 3 }, { dedupKey: "k" })).toEqual({ delivered: false });
    expect(await payloadsOf(runId)).toEqual([{ n: 1 }]);
  });

  it("makes redelivery a no-op after consumption too, and keeps no payload for that", async () => {
    const runId = await started();
    await pawl.signal(runId, "go", { secret: "x".repeat(1_000) }, { dedupKey: "k" });
    await pawl.signal(runId, "go");
    await consumed(runId, 2);
    expect(await rowsOf(runId)).toEqual([{ seq: 1, name: "go", payload: null, dedup_key: "k" }]);
    expect(await pawl.signal(runId, "go", {}, { dedupKey: "k" })).toEqual({ delivered: false });
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "awaiting_signal", state: { n: 2 } });
  });

  it("makes redelivery a no-op on a terminal run, whether it was consumed or not", async () => {
    const runId = await started();
    await pawl.signal(runId, "never-awaited", { secret: 1 }, { dedupKey: "waiting" });
    await pawl.signal(runId, "end", {}, { dedupKey: "shown" });
    await pawl.result(runId);
    for (const dedupKey of ["waiting", "shown"]) {
      expect(await pawl.signal(runId, "end", {}, { dedupKey })).toEqual({ delivered: false });
    }
    expect((await rowsOf(runId)).map(({ payload }) => payload)).toEqual([null, null]);
    await expect(pawl.signal(runId, "end", {}, { dedupKey: "new" })).rejects.toMatchObject({
      code: "RunEnded",
    });
    await expect(pawl.signal(runId, "end")).rejects.toMatchObject({ code: "RunEnded" });
  });

  it("makes redelivery a no-op on a cancelled run", async () => {
    const runId = await untouched();
    await pawl.signal(runId, "go", { secret: 1 }, { dedupKey: "k" });
    await pawl.runs.cancel(runId);
    expect(await pawl.signal(runId, "go", {}, { dedupKey: "k" })).toEqual({ delivered: false });
    expect(await payloadsOf(runId)).toEqual([null]);
  });

  it("delivers one of several that are sent at once", async () => {
    const runId = await untouched();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        pawl.signal(runId, "go", { n }, { dedupKey: n % 2 ? "odd" : "even" }),
      ),
    );
    expect(answers.filter(({ delivered }) => delivered)).toHaveLength(2);
    expect(await payloadsOf(runId)).toEqual([{ n: 0 }, { n: 1 }]);
  });

  it("is one of its run: another run takes the same key", async () => {
    const [one, other] = [await untouched(), await untouched()];
    for (const runId of [one, other]) {
      expect(await pawl.signal(runId, "go", {}, { dedupKey: "k" })).toEqual({ delivered: true });
    }
  });

  it("is not needed: without one the same signal is delivered as often as it is sent", async () => {
    const runId = await untouched();
    for (const n of [1, 1]) expect(await pawl.signal(runId, "go", { n })).toEqual({ delivered: true });
    expect(await payloadsOf(runId)).toEqual([{ n: 1 }, { n: 1 }]);
  });
});

describe("sending", () => {
  it("to a run that does not exist, by a well-formed or a malformed id: RunNotFound", async () => {
    for (const runId of ["64000000000", "0", "", "run-7", "-1", "1e3", "9".repeat(40)]) {
      await expect(pawl.signal(runId, "go"), runId).rejects.toMatchObject({ code: "RunNotFound" });
      await expect(pawl.signal(runId, "go", {}, { dedupKey: "k" })).rejects.toMatchObject({
        code: "RunNotFound",
      });
    }
  });

  it("refuses what is no signal, names what is wrong, and writes nothing", async () => {
    const runId = await untouched();
    const send = pawl.signal.bind(pawl) as (...all: unknown[]) => Promise<unknown>;
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const refused: [unknown[], string, RegExp][] = [
      [["go", null], "InvalidInput", /payload .*null/],
      [["go", { a: [1, { b: 1n }] }], "NotSerializable", /payload\.a\[1\]\.b/],
      [["go", circular], "NotSerializable", /payload\.self/],
      [["go", { at: Number.NaN }], "NotSerializable", /payload\.at/],
      [["go", "x".repeat(1_048_577)], "PayloadTooLarge", /payload/],
      [["no spaces"], "InvalidOption", /no spaces/],
      [[""], "InvalidOption", /signal/],
      [["x".repeat(129)], "InvalidOption", /128/],
      [[7], "InvalidOption", /7/],
      [["go", {}, { dedupkey: "k" }], "InvalidOption", /did you mean "dedupKey"/],
      [["go", {}, { dedupKey: 7 }], "InvalidOption", /dedupKey/],
      [["go", {}, { dedupKey: "x".repeat(513) }], "InvalidOption", /dedupKey/],
      [["go", {}, 7], "InvalidOption", /options of signal/],
    ];
    for (const [given, code, message] of refused) {
      const error: unknown = await send(runId, ...given).catch((caught: unknown) => caught);
      expect(error, JSON.stringify(code)).toMatchObject({ code });
      expect((error as Error).message).toMatch(message);
    }
    expect(await rowsOf(runId)).toEqual([]);
    expect(await sql("select inbox_seq from runs where id = $1", [runId])).toEqual([{ inbox_seq: 0 }]);
  });

  it("without a payload sends {}", async () => {
    const runId = await untouched();
    await pawl.signal(runId, "go");
    await pawl.signal(runId, "go", undefined, { dedupKey: "k" });
    expect(await payloadsOf(runId)).toEqual([{}, {}]);
  });

  it("takes a payload of exactly one mebibyte, or of what the client allows", async () => {
    const runId = await untouched();
    await pawl.signal(runId, "go", "x".repeat(1_048_574));
    const small = connect(database.url, { maxPayloadBytes: 2_000 });
    afterAll(() => small.close());
    await expect(small.signal(runId, "go", "x".repeat(2_000))).rejects.toMatchObject({
      code: "PayloadTooLarge",
    });
    await small.signal(runId, "go", "x".repeat(1_998));
    expect((await payloadsOf(runId)).map((payload) => (payload as string).length)).toEqual([
      1_048_574, 1_998,
    ]);
  });

  it("at once from many callers delivers each exactly once, numbered without a gap", async () => {
    const runId = await untouched();
    const clients = Array.from({ length: 4 }, () => connect(database.url));
    afterAll(() => Promise.all(clients.map((client) => client.close())));
    const numbers = Array.from({ length: 400 }, (_, n) => n);
    await Promise.all(numbers.map((n) => clients[n % 4]!.signal(runId, "go", n)));
    const rows = await rowsOf(runId);
    expect(rows.map(({ seq }) => seq)).toEqual(numbers.map((n) => n + 1));
    expect(rows.map(({ payload }) => payload as number).toSorted((a, b) => a - b)).toEqual(numbers);
  });

  it("one after the other delivers in that order", async () => {
    const runId = await untouched();
    for (let n = 0; n < 20; n++) await pawl.signal(runId, "go", n);
    expect(await payloadsOf(runId)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it("fails alone, when the database refuses one of those that are sent together", async () => {
    await sql("alter table signals add constraint no_poison check (name <> 'poison')");
    const runIds = [await untouched(), await untouched(), await started()];
    const sent = runIds.flatMap((runId) => [
      pawl.signal(runId, "go"),
      pawl.signal(runId, "poison"),
      pawl.signal(runId, "other"),
    ]);
    const outcomes = (await Promise.allSettled(sent)).map(({ status }) => status);
    expect(outcomes).toEqual(runIds.flatMap(() => ["fulfilled", "rejected", "fulfilled"]));
    await consumed(runIds[2]!, 1);
    const names = (await rowsOf(runIds[0]!)).map(({ name }) => name);
    expect(names.toSorted()).toEqual(["go", "other"]);
    await sql("alter table signals drop constraint no_poison");
  });

  it.each([1, 25])(
    "to a run that an open transaction holds waits, to others not: with %i waiting",
    async (count) => {
      const [held, ...others] = [await untouched(), await untouched(), await started(), await untouched()];
      const holder = await database.connect();
      await holder.query("begin");
      await holder.query("select from runs where id = $1 for update", [held]);
      let arrived = 0;
      const waiting = Array.from({ length: count }, async (_, n) => {
        await pawl.signal(held, "go", { n });
        arrived++;
      });
      const sent = Promise.all(
        [1, 2, 3].flatMap((round) => others.map((runId) => pawl.signal(runId, "go", { round }))),
      );
      const all = Promise.allSettled([...waiting, sent]);
      let answers = 0;
      void sent.then(
        ({ length }) => (answers = length),
        () => {},
      );
      const isUnaffected = await until("the others are delivered", () => answers === 9, 10_000).catch(
        () => false,
      );
      const early = arrived;
      await holder.query("rollback");
      await all;
      expect(isUnaffected).toBe(true);
      expect(early).toBe(0);
      expect(arrived).toBe(count);
      expect(await rowsOf(held)).toHaveLength(count);
    },
  );
});

describe("a full inbox", () => {
  /** Fills an inbox up to this many signals, as if they had been sent. */
  const fill = async (runId: string, count: number): Promise<void> => {
    await sql(
      `insert into signals (run_id, seq, name, payload, inserted_at)
       select $1, n, 'go', '{}', clock_timestamp() from generate_series(1, $2::int) n`,
      [runId, count],
    );
    await sql("update runs set inbox_seq = $2 where id = $1", [runId, count]);
  };

  it("holds 10,000 signals and takes no other, of whatever name: InboxFull", async () => {
    const runId = await untouched();
    await fill(runId, 9_998);
    await pawl.signal(runId, "go", {}, { dedupKey: "k" });
    await pawl.signal(runId, "go");
    for (const name of ["go", "other"]) {
      await expect(pawl.signal(runId, name)).rejects.toMatchObject({ code: "InboxFull" });
    }
    expect(await pawl.signal(runId, "go", {}, { dedupKey: "k" })).toEqual({ delivered: false });
    expect(await rowsOf(runId)).toHaveLength(10_000);
  });

  it("of signals that are sent together takes as many as fit, and redeliveries take no room", async () => {
    const runId = await untouched();
    await fill(runId, 9_997);
    const sent = ["a", "a", "b", "a", "c", "d"].map((dedupKey) => pawl.signal(runId, "go", {}, { dedupKey }));
    const answers = (await Promise.allSettled(sent)).map((answer) =>
      answer.status === "fulfilled" ? answer.value.delivered : (answer.reason as { code: string }).code,
    );
    expect(answers).toEqual([true, false, true, false, true, "InboxFull"]);
    expect(await rowsOf(runId)).toHaveLength(10_000);
  });

  it("has room again once it is consumed, and the whole of it is shown at once", async () => {
    const runId = await started();
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    await fill(runId, 9_999);
    await pawl.signal(runId, "go");
    await consumed(runId, 10_000);
    expect(await pawl.signal(runId, "go")).toEqual({ delivered: true });
    await consumed(runId, 10_001);
    await pawl.signal(runId, "end");
    expect(await pawl.result(runId)).toBe(10_001);
  });

  it("takes one signal that ends the present wait of the run, and no other", async () => {
    const picky = machine({
      name: "picky",
      queue: "picky",
      state: type<{ seen: string[] }>(),
      steps: {
        start: (ctx) => ctx.awaitSignal("paid", "more", ctx.state, { match: { order: 7 } }),
        more: (ctx) =>
          ctx.awaitSignal(["paid", "end"], "last", { seen: ctx.awaited.map(({ name }) => name) }),
        last: (ctx) => ctx.done([...ctx.state.seen, ...ctx.awaited.map(({ name }) => name)]),
      },
    });
    const parked = async (runId: string, step: string) =>
      until("it waits", async () => {
        const run = await pawl.runs.get(runId);
        return run.phase === "awaiting_signal" && run.step === step;
      });
    const worker = await serve([picky]);
    const { runId } = await pawl.start(picky, { seen: [] });
    await parked(runId, "more");
    await fill(runId, 10_000);
    const full = { code: "InboxFull" };
    await expect(pawl.signal(runId, "other", { order: 7 })).rejects.toMatchObject(full);
    await expect(pawl.signal(runId, "paid", { order: 8 })).rejects.toMatchObject(full);
    // While nobody consumes: of many that would end the wait, one is taken.
    await worker.stop();
    const sent = await Promise.allSettled(
      Array.from({ length: 5 }, () => pawl.signal(runId, "paid", { order: 7 })),
    );
    expect(sent.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await rowsOf(runId)).toHaveLength(10_001);
    await serve([picky]);
    await parked(runId, "last");
    // Nothing was consumed yet: the next wait has a place of its own.
    await expect(pawl.signal(runId, "other")).rejects.toMatchObject(full);
    await pawl.signal(runId, "end");
    expect(await pawl.result(runId)).toEqual(["paid", "paid", "end"]);
  });

  it("is counted anew: signals consumed long ago take no room, nor do the keys that they leave", async () => {
    const runId = await untouched();
    await sql(
      `insert into signals (run_id, seq, name, dedup_key, inserted_at, consumed_at)
       select $1, n, 'go', n::text, clock_timestamp(), clock_timestamp() from generate_series(1, 12000) n`,
      [runId],
    );
    await sql("update runs set inbox_seq = 12000 where id = $1", [runId]);
    expect(await pawl.signal(runId, "go", { n: 1 })).toEqual({ delivered: true });
    expect(await pawl.signal(runId, "go", {}, { dedupKey: "12000" })).toEqual({ delivered: false });
  });
});
