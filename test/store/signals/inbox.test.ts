import { describe, expect, it } from "vitest";
import type { ClaimedRun, Transition, Verdict } from "../../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../../support/database.js";
import {
  claim,
  claimOne,
  commit,
  done,
  endRunsAfterEach,
  keep,
  key,
  next,
  park,
  register,
  retry,
  signal,
  spawn,
  start,
  stop,
} from "../../support/store.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");
endRunsAfterEach(database);

type Claimed = ClaimedRun & { claimId: string };

/** A run that waits. */
async function parked(transition: Transition): Promise<string> {
  const [runId] = await start(database, {});
  const run = await claimOne(database);
  expect(run.runId).toBe(runId);
  expect(await commit(database, run, transition)).toMatchObject({ kind: "committed" });
  return runId!;
}

const statusOf = async (runId: string): Promise<string> =>
  (await sql<{ status: string }>("select status from runs where id = $1", [runId]))[0]!.status;
const seqsOf = async (runId: string): Promise<number[]> => {
  const rows = await sql<{ seq: number }>(
    "select seq from signals where run_id = $1 and consumed_at is null order by seq",
    [runId],
  );
  return rows.map(({ seq }) => seq);
};
const matched = ({ inbox }: ClaimedRun): number[] => inbox!.filter((s) => s.matched).map(({ seq }) => seq);

/** Ends the worker's lease, as when it has died. */
async function reapWorker(workerId: string): Promise<void> {
  await sql("delete from workers where id = $1", [workerId]);
  expect(await store.reap(100)).toBe(1);
}

describe("a name of more than 256 bytes", () => {
  const long = "é".repeat(129);
  const message = /at most 256 bytes, not 258/;

  it("is refused as that of a signal, alone, in a batch and in SQL", async () => {
    const [runId] = await start(database, {});
    await expect(signal(database, runId!, long)).rejects.toThrow(message);
    const sent = ["short", long].map((name) => ({ runId: runId!, name, payload: "{}", dedupKey: null }));
    await expect(store.signal(sent, { patient: false })).rejects.toThrow(message);
    await expect(sql("select signal($1, $2)", [runId, long])).rejects.toMatchObject({ code: "PW422" });
    expect(await seqsOf(runId!)).toEqual([]);
    expect(await signal(database, runId!, "é".repeat(128))).toBe("delivered");
  });

  it("is refused as that of a signal that is awaited", async () => {
    await start(database, {});
    const run = await claimOne(database);
    expect(await commit(database, run, park(["a", long]))).toMatchObject({ kind: "failed", code: "PW422" });
    expect(await commit(database, run, done())).toMatchObject({ kind: "committed" });
  });

  it("is refused as a topic, and as the pattern of a subscription", async () => {
    await expect(store.publish(long, "{}", null)).rejects.toThrow(message);
    await expect(store.subscribe(long, { type: "queue", queue: "q" }, null)).rejects.toThrow(message);
    await expect(sql("select publish($1, '{}')", [long])).rejects.toMatchObject({ code: "PW422" });
  });
});

describe("signal", () => {
  it("wakes a run that awaits it and says in which queue; for all others it says nothing", async () => {
    const awaiting = await parked(park("a", { match: '{"ok":true}' }));
    const { claimable: none } = await store.signal(
      [
        { runId: awaiting, name: "b", payload: '{"ok":true}', dedupKey: null },
        { runId: awaiting, name: "a", payload: '{"ok":false}', dedupKey: null },
      ],
      { patient: true },
    );
    expect(none).toEqual([]);
    expect(await statusOf(awaiting)).toBe("awaiting_signal");
    const wanted = [{ runId: awaiting, name: "a", payload: '{"ok":true}', dedupKey: null }];
    const { claimable } = await store.signal(wanted, { patient: true });
    expect(claimable).toMatchObject([{ queue: "default", priority: 0 }]);
    expect(matched(await claimOne(database))).toEqual([3]);
  });

  it("answers for each of a batch: delivered, duplicate, ended, not found", async () => {
    const [live, other, ended] = await start(database, {}, {}, {});
    await store.cancel(ended!, { reason: null, cascade: false });
    const send = (runId: string, dedupKey: string | null) => ({ runId, name: "a", payload: "{}", dedupKey });
    const { verdicts } = await store.signal(
      [
        send(live!, "k"),
        send(ended!, null),
        send(live!, "k"),
        send("6400000", "k"),
        send(other!, "k"),
        send(live!, null),
        send(live!, "l"),
        send(live!, "l"),
      ],
      { patient: true },
    );
    expect(verdicts).toEqual([
      "delivered",
      "ended",
      "duplicate",
      "not_found",
      "delivered",
      "delivered",
      "delivered",
      "duplicate",
    ]);
    expect(await seqsOf(live!)).toHaveLength(3);
    expect(await signal(database, live!, "a")).toBe("delivered");
    const [row] = await sql<{ inbox_seq: number }>("select inbox_seq from runs where id = $1", [live]);
    expect((await seqsOf(live!)).at(-1)).toBe(row!.inbox_seq);
  });

  it("writes nothing of a batch with a payload that is no JSON", async () => {
    const runId = await parked(park("a"));
    const sent = ["{}", "{", "{}"].map((payload) => ({ runId, name: "a", payload, dedupKey: null }));
    await expect(store.signal(sent, { patient: true })).rejects.toThrow(/json/);
    expect(await seqsOf(runId)).toEqual([]);
    expect(await statusOf(runId)).toBe("awaiting_signal");
  });

  it.each(["signal", "await"])(
    "and await that meet, the %s first in line: the wait is over",
    async (first) => {
      const [runId] = await start(database, {});
      const run = await claimOne(database);
      const holder = await database.connect();
      await holder.query("begin");
      await holder.query("select from runs where id = $1 for update", [runId]);
      const waiters = (count: number): Promise<unknown> =>
        until(`${count} wait for the run`, async () => {
          const rows = await sql(
            "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          );
          return rows.length === count;
        });
      const awaits = async (): Promise<Verdict> => {
        for (;;) {
          const verdict = await commit(database, run, park("a"));
          if (verdict.kind !== "busy") return verdict;
        }
      };
      const calls: (() => Promise<unknown>)[] = [() => signal(database, runId!, "a"), awaits];
      const ordered = first === "signal" ? calls : calls.toReversed();
      const both: Promise<unknown>[] = [];
      try {
        for (const call of ordered) {
          both.push(call());
          await waiters(both.length);
        }
      } finally {
        await holder.query("rollback");
      }
      await Promise.all(both);
      expect(matched(await claimOne(database))).toEqual([1]);
    },
  );
});

describe("an await", () => {
  it("is over at once by an unshown match, and only by that", async () => {
    const [runId] = await start(database, {});
    for (const payload of ["1", "2"]) await signal(database, runId!, "a", { payload });
    let run: Claimed = await claimOne(database);
    await commit(database, run, park("a", { shown: [] }));
    run = await claimOne(database);
    expect(matched(run)).toEqual([1, 2]);
    await commit(database, run, park("a", { shown: [1] }));
    run = await claimOne(database);
    await commit(database, run, park("a", { shown: [1, 2] }));
    expect((await claim(database)).runs).toEqual([]);
    await signal(database, runId!, "a");
    expect(matched(await claimOne(database))).toEqual([1, 2, 3]);
  });

  it("is claimed at its deadline and not a microsecond before, as timed out", async () => {
    await sql("create table clock (at timestamptz)");
    await sql("insert into clock values ('2040-01-01T00:00:00Z')");
    const turn = (body: string): Promise<unknown> =>
      sql(
        `create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ ${body} $$`,
      );
    await turn("select at from pawl.clock");
    try {
      const runId = await parked(park("a", { timeoutMs: 1_500 }));
      await sql("update clock set at = '2040-01-01T00:00:01.499999Z'");
      const early = await claim(database);
      expect(early.runs).toEqual([]);
      expect(early.dueMs).toBeCloseTo(0.001, 6);
      await sql("update clock set at = '2040-01-01T00:00:01.5Z'");
      expect(await claimOne(database)).toMatchObject({ runId, timedOut: true, step: "woken", attempt: 0 });
    } finally {
      await turn("select clock_timestamp()");
    }
  });

  it("that timed out stays so, without what came later, after a crash, a release and a retry, until the next step", async () => {
    const runId = await parked(park(["a", "b"], { timeoutMs: 0, match: "{}" }));
    await register(database, "dying");
    expect(await claimOne(database, { workerId: "dying" })).toMatchObject({ timedOut: true });
    await reapWorker("dying");
    await signal(database, runId, "b");
    let run = await claimOne(database);
    expect(run).toMatchObject({ timedOut: true, attempt: 1 });
    expect(matched(run)).toEqual([]);
    await store.release([run]);
    run = await claimOne(database);
    expect(run).toMatchObject({ timedOut: true, attempt: 1 });
    await commit(database, run, retry());
    run = await claimOne(database);
    expect(run).toMatchObject({ timedOut: true, attempt: 2 });
    expect(matched(run)).toEqual([]);
    await commit(database, run, next("after"));
    run = await claimOne(database);
    expect(run).toMatchObject({ timedOut: false, inbox: [{ seq: 1 }] });
    await commit(database, run, park("b"));
    run = await claimOne(database);
    expect(matched(run)).toEqual([1]);
  });

  it("that a signal ended is not timed out, however late the claim and after however many crashes", async () => {
    const runId = await parked(park("a", { timeoutMs: 0 }));
    await signal(database, runId, "a");
    await register(database, "dying");
    expect(await claimOne(database, { workerId: "dying" })).toMatchObject({ timedOut: false });
    await reapWorker("dying");
    await signal(database, runId, "a");
    const run = await claimOne(database);
    expect(run).toMatchObject({ timedOut: false, attempt: 1 });
    expect(matched(run)).toEqual([1]);
  });

  it.each(["signal", "timeout"])(
    "whose %s comes while its unique key is taken gives the key up",
    async (by) => {
      const scoped = { uniqueKey: key(by), uniqueScope: ["runnable", "executing"] } as const;
      const [runId] = await start(database, scoped);
      await commit(database, await claimOne(database), park("a", { timeoutMs: by === "timeout" ? 0 : null }));
      const [taker] = await start(database, { ...scoped, delayMs: 3_600_000 });
      expect(taker).not.toBe(runId);
      if (by === "signal") expect(await signal(database, runId!, "a")).toBe("delivered");
      const run = await claimOne(database);
      expect(run).toMatchObject({ runId, timedOut: by === "timeout" });
      expect(matched(run)).toEqual(by === "signal" ? [1] : []);
      const rows = await sql("select id from runs where unique_key = $1", [scoped.uniqueKey]);
      expect(rows).toEqual([{ id: taker }]);
    },
  );
});

describe("consumption", () => {
  const consuming: [string, (consumed: number[]) => Transition][] = [
    ["keep", (consumed) => ({ kind: "keep", step: "s", state: null, consumed })],
    ["next", (consumed) => next("s", null, { consumed })],
    ["spawn", (consumed) => ({ ...(spawn({}) as Extract<Transition, { kind: "spawn" }>), consumed })],
  ];

  it.each(consuming)(
    "by %s takes what was shown; of a dedup key only the key stays",
    async (_kind, transition) => {
      const [runId] = await start(database, {});
      for (const dedupKey of [null, "k", null])
        await signal(database, runId!, "a", { dedupKey, payload: "7" });
      const run = await claimOne(database);
      await signal(database, runId!, "a", { payload: "8" });
      await commit(database, run, transition([1, 2]));
      const columns = "seq, payload, dedup_key, consumed_at is not null as consumed";
      expect(await sql(`select ${columns} from signals where run_id = $1 order by seq`, [runId])).toEqual([
        { seq: 2, payload: null, dedup_key: "k", consumed: true },
        { seq: 3, payload: 7, dedup_key: null, consumed: false },
        { seq: 4, payload: 8, dedup_key: null, consumed: false },
      ]);
    },
  );

  it.each(consuming)("by a stale %s takes nothing", async (_kind, transition) => {
    const [runId] = await start(database, {});
    await signal(database, runId!, "a");
    const run = await claimOne(database);
    await store.release([run]);
    expect(await commit(database, run, transition([1]))).toEqual({ kind: "stale" });
    expect(await seqsOf(runId!)).toEqual([1]);
  });

  it.each([
    ["done", done()],
    ["stop", stop("no")],
  ])("by %s is that of the whole inbox, with what came during the step", async (_kind, transition) => {
    const [runId] = await start(database, {});
    const run = await claimOne(database);
    for (const dedupKey of [null, "k"]) await signal(database, runId!, "a", { dedupKey, payload: "7" });
    await commit(database, run, transition);
    const rows = await sql("select payload, dedup_key from signals where run_id = $1", [runId]);
    expect(rows).toEqual([{ payload: null, dedup_key: "k" }]);
  });

  it("with the claim kept tells how far the inbox goes by now, if that is news", async () => {
    const [runId] = await start(database, {});
    const run = await claimOne(database);
    expect(await commit(database, run, keep("two"))).toMatchObject({ kind: "committed", inboxSeq: null });
    await signal(database, runId!, "a");
    const news = await commit(database, run, keep("three"), { turn: 1 });
    expect(news).toMatchObject({ kind: "committed", inboxSeq: 1 });
    const told = { ...run, inboxSeq: 1 };
    expect(await commit(database, told, keep("four"), { turn: 2 })).toMatchObject({ inboxSeq: null });
  });
});
