import { randomBytes } from "node:crypto";
import { job, serve } from "pawl";
import { afterEach, describe, expect, it } from "vitest";
import type { ClaimedRun, NewRun } from "../../packages/pawl/dist/store/store.js";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import {
  aRun,
  claim,
  claimOne,
  commit,
  commitAll,
  done,
  keep,
  key,
  next,
  register,
  retry,
  start,
  stop,
} from "../support/store.js";
import { until } from "../support/until.js";

const database = await testDatabase();
const { store, sql } = database;
await register(database, "worker");

/** Ends every run, so that tests do not see each other. */
const drain = async (): Promise<void> => {
  await sql(
    "update runs set status = 'done', locked_by = null, completed_at = clock_timestamp() where completed_at is null",
  );
};

afterEach(drain);

describe("an error is charged to a run", () => {
  it.each([
    ["22P02", true],
    ["23505", true],
    ["54000", true],
    ["PW422", true],
    ["P0001", true],
    ["55P03", true],
    ["42501", false],
    ["42883", false],
    ["57014", false],
    ["40P01", false],
    ["53100", false],
    ["25006", false],
    ["28000", false],
    ["XX000", false],
    ["P0002", false],
    ["99999", false],
  ])("only if its code is known to be a row's fault: %s", async (code, isFault) => {
    expect(await sql("select is_row_fault($1) as fault", [code])).toEqual([{ fault: isFault }]);
  });
});

describe("one row never costs another", () => {
  it("one bad value fails its own run and commits the rest of the batch", async () => {
    await start(database, {}, {}, {});
    const { runs, claimId } = await claim(database);
    const states = ['{"ok":1}', '{"bad":', '{"ok":3}'];
    const verdicts = await commitAll(database, runs, claimId, (index) => keep("two", states[index]));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["committed", "failed", "committed"]);
    expect(verdicts[1]).toMatchObject({ code: "22P02" });
    const rows = await sql(
      "select status, step, state, turn::int from runs where id = any ($1) order by id",
      [runs.map(({ runId }) => runId)],
    );
    expect(rows).toEqual([
      { status: "executing", step: "two", state: { ok: 1 }, turn: 1 },
      { status: "executing", step: null, state: null, turn: 0 },
      { status: "executing", step: "two", state: { ok: 3 }, turn: 1 },
    ]);
    // the culprit keeps its claim and its turn
    expect(await commit(database, { runId: runs[1]!.runId, claimId }, stop("bad"))).toMatchObject({
      kind: "committed",
    });
  });

  it("a value that jsonb cannot hold is refused by its code, whatever else is in the batch", async () => {
    await start(database, {}, {});
    const { runs, claimId } = await claim(database);
    const verdicts = await commitAll(database, runs, claimId, (index) =>
      done(index === 0 ? String.raw`"nul \u0000"` : '"fine"'),
    );
    expect(verdicts).toMatchObject([{ kind: "failed", code: "22P05" }, { kind: "committed" }]);
  });

  it("a user's open transaction delays only the run it touches", async () => {
    const [touched, other] = await start(database, {}, {});
    const { runs, claimId } = await claim(database);
    expect(runs).toHaveLength(2);
    const user = await database.connect();
    await user.query("begin");
    await user.query("select from runs where id = $1 for update", [touched]);
    const verdicts = await commitAll(database, runs, claimId, () => done());
    expect(verdicts.map(({ kind }) => kind)).toEqual(["busy", "committed"]);
    expect(await commit(database, { runId: touched!, claimId }, done(), { patient: false })).toEqual({
      kind: "busy",
    });
    await start(database, {});
    expect((await claim(database)).runs).toHaveLength(1);
    await user.query("commit");
    expect(await commit(database, { runId: touched!, claimId }, done())).toMatchObject({ kind: "committed" });
    expect(await commit(database, { runId: other!, claimId }, done())).toMatchObject({ kind: "already" });
  });

  it("a row that a trigger refuses fails alone, and so does one that nothing can let go", async () => {
    await sql(`create function refuse() returns trigger language plpgsql as $$
      begin if new.input = '"refused"' then raise 'not this one'; end if; return new; end $$`);
    await start(database, {}, { input: '"refused"' }, {});
    const { runs, claimId } = await claim(database);
    await sql("create trigger refuse before update on runs for each row execute function refuse()");
    const verdicts = await commitAll(database, runs, claimId, () => keep("two"));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["committed", "failed", "committed"]);
    const released = await store.release(runs.map(({ runId }) => ({ runId, claimId })));
    expect(released).toEqual([runs[0]!.runId, runs[2]!.runId]);
    await sql("drop trigger refuse on runs");
  });

  it("a claim that needs a key which an open transaction holds leaves that run and takes the others", async () => {
    const scope = { uniqueKey: key("pending"), uniqueScope: ["executing"] as const };
    const ids = await start(database, scope, {});
    const user = await database.connect();
    await user.query("begin");
    await user.query(
      "insert into runs (id, status, name, queue, priority, retention, eligible_at, inserted_at, input, unique_key, unique_scope) values (999936, 'executing', 'x', 'x', 0, '1 d', now(), now(), '1', 'pending', '{executing}')",
    );
    expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([ids[1]]);
    await user.query("rollback");
    expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual([ids[0]]);
  });

  it("claims skip what is locked and take the next, in order", async () => {
    const ids = await start(database, {}, {}, {}, {});
    const user = await database.connect();
    await user.query("begin");
    await user.query("select from runs where id = any ($1) for update", [ids.slice(0, 2)]);
    const { runs } = await claim(database, { limit: 2 });
    expect(runs.map(({ runId }) => runId)).toEqual(ids.slice(2));
    await user.query("rollback");
    expect((await claim(database)).runs.map(({ runId }) => runId)).toEqual(ids.slice(0, 2));
  });

  it("a reaped run that finds its unique key taken gives the key up, and the others are reaped with it", async () => {
    await register(database, "dead");
    const scope = { uniqueScope: ["runnable"] as const };
    await start(database, {}, { uniqueKey: key("taken"), ...scope }, {});
    const { runs } = await claim(database, { workerId: "dead" });
    expect(runs).toHaveLength(3);
    const [holder] = await store.start([aRun({ uniqueKey: key("taken"), ...scope })], {
      allOrNothing: false,
      claim: null,
    });
    expect(holder!.created).toBe(true);
    await sql("update workers set seen_at = seen_at - interval '1 hour' where id = 'dead'");
    await sql("update settings set beats_since = clock_timestamp() - interval '1 hour'");
    expect(await store.reap(100)).toBe(3);
    const rows = await sql(
      "select status, attempt, crashes, unique_key from runs where id = any ($1) order by id",
      [runs.map(({ runId }) => runId)],
    );
    expect(rows).toEqual(Array(3).fill({ status: "runnable", attempt: 1, crashes: 1, unique_key: null }));
    expect(await sql("select from workers where id = 'dead'")).toEqual([]);
  });

  it("a run that re-enters its unique scope by its outcome while the key is taken gives the key up and goes on", async () => {
    const taken = { uniqueKey: key("again"), uniqueScope: ["runnable"] as const };
    await start(database, taken, {});
    const { runs, claimId } = await claim(database);
    const [holder] = await start(database, taken);
    const verdicts = await commitAll(database, runs, claimId, () => next("two", '{"n":1}'));
    expect(verdicts).toMatchObject([
      { kind: "committed", uniqueLost: true },
      { kind: "committed", uniqueLost: false },
    ]);
    const rows = await sql("select id, step from runs where unique_guard = 'again'");
    expect(rows).toEqual([{ id: holder, step: null }]);
  });

  it("a run that enters its unique scope by being claimed while the key is taken gives the key up", async () => {
    const scope = { uniqueKey: key("executing-only"), uniqueScope: ["executing"] as const };
    await start(database, scope, scope, {});
    const { runs } = await claim(database);
    expect(runs.map(({ uniqueLost }) => uniqueLost).toSorted()).toEqual([false, false, true]);
  });

  it("a claim answers at most 16 MiB and leaves the rest for the next", async () => {
    const large = JSON.stringify("x".repeat(1_000_000));
    await start(database, ...Array.from({ length: 30 }, () => ({ input: large })));
    const first = await claim(database);
    expect(first.runs.length).toBeGreaterThan(10);
    expect(first.runs.length).toBeLessThanOrEqual(16);
    expect(first.more).toBe(true);
    const second = await claim(database);
    expect(first.runs.length + second.runs.length).toBe(30);
  });

  describe("a claim answers at most 16 MiB", () => {
    const most = 16 * 1024 * 1024;
    const sizeOf = ({ input, inbox, journal, waiting }: ClaimedRun): number =>
      Buffer.byteLength(input ?? "") + Buffer.byteLength(JSON.stringify({ inbox, journal, waiting }));
    const text = (bytes: number): string => randomBytes(bytes / 2).toString("hex");
    const starts = async (count: number, given: Partial<NewRun>): Promise<void> => {
      await start(database, ...Array.from({ length: count }, () => given));
    };
    /** Claims until nothing is left: how many runs there were, and how large the answers. */
    const claims = async (): Promise<{ count: number; bytes: number[] }> => {
      const bytes: number[] = [];
      let count = 0;
      for (;;) {
        const { runs } = await claim(database);
        if (runs.length === 0) return { count, bytes };
        count += runs.length;
        bytes.push(runs.reduce((sum, run) => sum + sizeOf(run), 0));
      }
    };

    it("with inboxes that come along", async () => {
      await starts(100, { input: JSON.stringify(text(150_000)) });
      await sql(
        `insert into signals (run_id, seq, name, payload, inserted_at)
         select r.id, n, 'a', to_jsonb($1::text), clock_timestamp() from runs r, generate_series(1, 4) n where r.status = 'runnable'`,
        [text(20_000)],
      );
      await sql("update runs set inbox_seq = 4 where status = 'runnable'");
      const { count, bytes } = await claims();
      expect(count).toBe(100);
      expect(Math.max(...bytes)).toBeLessThanOrEqual(most);
    });

    it("with journals that come along, their errors and the names in inboxes", async () => {
      await starts(100, { kind: "workflow", input: JSON.stringify(text(100_000)) });
      await sql(
        `insert into steps (run_id, name, kind, seq, output, error, started_at, completed_at)
         select r.id, 'step-' || n, 'run', n, '1', jsonb_build_object('message', $1::text), clock_timestamp(), clock_timestamp()
         from runs r, generate_series(1, 10) n where r.status = 'runnable'`,
        [text(8_000)],
      );
      await sql(
        `insert into signals (run_id, seq, name, payload, inserted_at)
         select r.id, n, repeat('n', 120) || n, '1', clock_timestamp() from runs r, generate_series(1, 600) n where r.status = 'runnable'`,
      );
      await sql("update runs set inbox_seq = 600 where status = 'runnable'");
      const { count, bytes } = await claims();
      expect(count).toBe(100);
      expect(Math.max(...bytes)).toBeLessThanOrEqual(most);
    });

    it("of values that are longer as text than as they are stored", async () => {
      // Control characters: a byte each, and "\\u0001" as JSON. Random, so that they are not compressed.
      const bytes = Uint8Array.from(randomBytes(170_000), (byte) => 1 + (byte % 31));
      await starts(40, { input: JSON.stringify(Buffer.from(bytes).toString("latin1")) });
      const claimed = await claims();
      expect(claimed.count).toBe(40);
      expect(Math.max(...claimed.bytes)).toBeLessThanOrEqual(most);
    });
  });

  it("decides under READ COMMITTED only", async () => {
    const client = await database.connect();
    await client.query("begin isolation level repeatable read");
    await expect(client.query("select reap(10)")).rejects.toThrow(
      "READ COMMITTED only, and this transaction is REPEATABLE READ. Begin it with: begin isolation level read committed",
    );
    await client.query("rollback");
  });

  it("refuses a worker whose role or database has another level, and says what mends it", async () => {
    const [{ role, name }] = (await sql("select session_user as role, current_database() as name")) as [
      { role: string; name: string },
    ];
    const only = job({ name: "only", run: () => "done" });
    await sql(`alter database "${name}" set default_transaction_isolation = 'repeatable read'`);
    await sql(
      `alter role "${role}" in database "${name}" set default_transaction_isolation = 'serializable'`,
    );
    const refused = serve([only], { url: database.url, logger: silent });
    const { message } = await refused.ready.then(
      () => new Error("it was let in"),
      (error: Error) => error,
    );
    expect(message).toContain("this transaction is SERIALIZABLE");
    const [remedy] = /alter role .*'read committed'/.exec(message) ?? [""];
    expect(message).not.toContain(name);
    await sql(remedy.replace("<name>", name));
    const worker = serve([only], { url: database.url, logger: silent });
    await worker.ready;
    await worker.stop();
  });

  it("commits durably although the role has synchronous_commit off, and claims asynchronously", async () => {
    const client = await database.connect();
    const setting = async (call: string): Promise<string> => {
      await client.query("begin");
      await client.query(call);
      const { rows } = await client.query("select current_setting('synchronous_commit') as value");
      await client.query("rollback");
      return (rows as { value: string }[])[0]!.value;
    };
    const noCommit =
      "select commit('{1}', '{1}', '{0}', '{done}', null, null, '{null}', null, null, null, null, null, null, null, null, null, true)";
    const noClaim = "select claim('default', 'w', 1, 1, '{counter}', '{1}', null, null)";
    expect(await setting(noClaim)).toBe("off");
    await client.query("set synchronous_commit = off");
    expect(await setting(noCommit)).toBe("on");
  });
});

describe("one lock order", () => {
  it("commits of crossing batches never deadlock", async () => {
    const ids = await start(database, ...Array.from({ length: 40 }, () => ({})));
    const { claimId } = await claim(database);
    const before = await deadlocks();
    for (let round = 0; round < 15; round++) {
      const shuffled = (): string[] => ids.toSorted(() => Math.random() - 0.5);
      const batches = await Promise.all(
        [shuffled(), shuffled(), shuffled()].map((order) =>
          commitAll(
            database,
            order.map((runId) => ({ runId })),
            claimId,
            () => keep("step", `{"n":${round}}`),
            round,
          ),
        ),
      );
      const kinds = batches.flat().map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === "committed")).toHaveLength(40);
      expect(kinds.filter((kind) => kind === "already")).toHaveLength(80);
    }
    expect(await deadlocks()).toBe(before);
  });

  it("concurrent starts of the same keys in opposite orders never deadlock and start each key once", async () => {
    const before = await deadlocks();
    for (let round = 0; round < 20; round++) {
      const items = Array.from({ length: 30 }, (_, index) => ({ uniqueKey: key(`key-${round}-${index}`) }));
      const all = await Promise.all(
        [items, items.toReversed(), items].map((batch) => start(database, ...batch)),
      );
      expect(new Set(all.flat()).size).toBe(30);
      expect(all[1]!.toReversed()).toEqual(all[0]);
    }
    expect(await deadlocks()).toBe(before);
  });

  async function deadlocks(): Promise<number> {
    await sql("select pg_stat_force_next_flush()").catch(() => {});
    const [row] = await sql<{ deadlocks: string }>(
      "select deadlocks from pg_stat_database where datname = current_database()",
    );
    return Number(row!.deadlocks);
  }
});

describe("a commit against whoever holds the row", () => {
  it("waits for a short lock and then commits", async () => {
    await start(database, {});
    const run = await claimOne(database);
    const user = await database.connect();
    await user.query("begin");
    await user.query("select from runs where id = $1 for update", [run.runId]);
    const committing = commit(database, run, retry(0), { patient: true });
    await until("the commit waits for the lock", async () => {
      const rows = await sql(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
      return rows.length > 0;
    });
    await user.query("commit");
    expect(["committed", "busy"]).toContain((await committing).kind);
  });
});
