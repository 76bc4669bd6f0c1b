import { job, machine, NonRetryable, type Transaction, type, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { relayTo } from "../../support/proxies/relay.js";

/**
 * The connection of a transaction is lost at every boundary: before and after each of its statements reaches the server (begin, the
 * user's insert, the outcome, commit), and whatever follows, the insert has happened exactly once.
 */

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
await sql("create table public.ledger (who text not null)");

interface Cut {
  /** The how-manieth message of the transaction's connection, counted from its begin. */
  readonly message: number;
  /** Before it reaches the server, or when the server has answered and nobody has heard it. */
  readonly when: "before" | "after";
}

/** A proxy that loses one connection at a boundary, once. */
async function lossyProxy() {
  let cut: Cut | null = null;
  let count = 0;
  const relay = await relayTo(database.url, ({ client, database: server, end }) => {
    let messages = 0;
    let isLost = false;
    const lose = (): void => {
      cut = null;
      isLost = true;
      end();
    };
    let answerLost = false;
    client.on("data", (chunk: Buffer) => {
      if (chunk.includes("begin isolation level")) messages = 1;
      else if (messages > 0) messages++;
      count = Math.max(count, messages);
      if (cut !== null && messages === cut.message) {
        if (cut.when === "before") {
          lose();
          return;
        }
        answerLost = true;
      }
      if (chunk.includes("reset session")) messages = 0;
      server.write(chunk);
    });
    server.on("data", (chunk: Buffer) => {
      if (isLost) return;
      if (answerLost) lose();
      else client.write(chunk);
    });
  });
  afterAll(relay.close);
  return {
    url: relay.url,
    arm: (at: Cut) => {
      cut = at;
      count = 0;
    },
    isArmed: () => cut !== null,
    longest: () => count,
  };
}

const proxy = await lossyProxy();
/** A lost connection is no attempt. */
const retry = { attempts: 1 };
const inWorkflow = workflow({
  name: "in-workflow",
  run: async (ctx, who: string) => {
    const moved = await ctx.step.transaction(
      "move",
      async (tx) => {
        await tx.query("insert into public.ledger values ($1)", [who]);
        return who;
      },
      { retry },
    );
    return ctx.step.run("after", () => `${moved} moved`);
  },
});
const inJob = job({
  name: "in-job",
  backoff: () => 1,
  run: (ctx, who: string) =>
    ctx.transaction(async (tx) => {
      await tx.query("insert into public.ledger values ($1)", [who]);
      return `${who} moved`;
    }),
});
const inMachine = machine({
  name: "in-machine",
  state: type<{ who: string }>(),
  steps: {
    start: (ctx) =>
      ctx.transaction(async (tx) => {
        await tx.query("insert into public.ledger values ($1)", [ctx.state.who]);
        return ctx.next("end", ctx.state);
      }),
    end: (ctx) => ctx.done(`${ctx.state.who} moved`),
  },
  handle: (_error, ctx) => ctx.retry(ctx.state, 1),
});
await serve([inWorkflow, inJob, inMachine], { url: proxy.url, heartbeat: "200ms", lease: "3s" });

const statements = 4;
const cuts: Cut[] = Array.from({ length: statements }, (_, index) => index + 1).flatMap((message) => [
  { message, when: "before" },
  { message, when: "after" },
]);

describe.each([
  ["step.transaction", (who: string) => pawl.start(inWorkflow, who)],
  ["ctx.transaction of a job", (who: string) => pawl.start(inJob, who)],
  ["ctx.transaction of a machine", (who: string) => pawl.start(inMachine, { who })],
])("%s", (name, start) => {
  it.each(cuts)("happens exactly once if its connection is lost $when message $message", async (cut) => {
    const who = `${name} ${cut.message} ${cut.when}`;
    proxy.arm(cut);
    const { runId } = await start(who);
    expect(await pawl.result(runId, { timeout: "100s" })).toBe(`${who} moved`);
    expect(proxy.isArmed(), "the connection was lost").toBe(false);
    expect(await sql("select who from public.ledger where who = $1", [who])).toHaveLength(1);
  });

  it("has no more statements than that", async () => {
    proxy.arm({ message: 1_000, when: "before" });
    const { runId } = await start(`${name} whole`);
    await pawl.result(runId, { timeout: "100s" });
    expect(proxy.longest()).toBe(statements);
  });
});

describe("a transaction whose connection", () => {
  it("is lost before the commit is done again, which is no attempt, also of a job", async () => {
    let calls = 0;
    const once = job({
      name: "once",
      maxAttempts: 1,
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query("insert into public.ledger values ('once')");
          if (++calls === 1) await endConnectionOf(tx);
          await tx.query("select 1");
          return calls;
        }),
    });
    await serve([once]);
    const { runId } = await pawl.start(once, null);
    expect(await pawl.result(runId, { timeout: "100s" })).toBe(2);
    expect(await sql("select who from public.ledger where who = 'once'")).toHaveLength(1);
  });

  it("is ended by its own SQL every time fails in the end", async () => {
    let calls = 0;
    const endsItself = workflow({
      name: "ends-itself",
      run: (ctx, _input: null) =>
        ctx.step.transaction(
          "end-it",
          async (tx) => {
            calls++;
            await tx.query("select pg_terminate_backend(pg_backend_pid())");
            return null;
          },
          { retry },
        ),
    });
    await serve([endsItself]);
    const { runId } = await pawl.start(endsItself, null);
    await expect(pawl.result(runId, { timeout: "100s" })).rejects.toThrow('step "end-it" failed');
    expect(calls).toBe(6);
  });

  it("is lost while the function throws what no attempt would mend is not done again", async () => {
    let calls = 0;
    const hopeless = workflow({
      name: "hopeless",
      run: (ctx, _input: null) =>
        ctx.step.transaction("end-it", async (tx) => {
          calls++;
          await endConnectionOf(tx);
          throw new NonRetryable("no use");
        }),
    });
    await serve([hopeless]);
    const { runId } = await pawl.start(hopeless, null);
    await expect(pawl.result(runId, { timeout: "100s" })).rejects.toThrow("no use");
    expect(calls).toBe(1);
  });

  it("was idle for longer than the server allows is an error of the step", async () => {
    const calls = { workflow: 0, job: 0 };
    const dawdle = async (tx: Transaction, kind: keyof typeof calls): Promise<null> => {
      calls[kind]++;
      await tx.query("set local idle_in_transaction_session_timeout = 20");
      await new Promise((resolve) => setTimeout(resolve, 200));
      return null;
    };
    const idleStep = workflow({
      name: "idle-step",
      run: (ctx, _input: null) =>
        ctx.step.transaction("idle", (tx) => dawdle(tx, "workflow"), {
          retry: { attempts: 2, backoff: { base: 1 } },
        }),
    });
    const idleJob = job({
      name: "idle-job",
      maxAttempts: 2,
      backoff: () => 1,
      run: (ctx) => ctx.transaction((tx) => dawdle(tx, "job")),
    });
    await serve([idleStep, idleJob]);
    const started = [await pawl.start(idleStep, null), await pawl.start(idleJob, null)];
    for (const { runId } of started) {
      await expect(pawl.result(runId as never, { timeout: "100s" })).rejects.toThrow("failed");
    }
    expect(calls).toEqual({ workflow: 2, job: 2 });
  });
});

/** From outside, like a crash of the server. */
async function endConnectionOf(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
  await sql("select pg_terminate_backend($1)", [rows[0]!.pid]);
}
