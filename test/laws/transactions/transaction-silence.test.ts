/**
 * The connection of a transaction goes silent: it stays open, and no byte passes any more, as with
 * a host that has vanished. Whatever statement of Pawl's it happens at, and whether the server has
 * executed that or not, the user's SQL has happened exactly once, the run goes on, and no session
 * that nobody answers keeps it locked.
 */

import { job, machine, type, workflow } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { relayTo } from "../../support/proxies/relay.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;
await sql("create table public.ledger (who text not null)");

const relays: { close(): Promise<void> }[] = [];
afterAll(() => Promise.all(relays.map((relay) => relay.close())));

interface Silence {
  /** A part of the statement it begins with. */
  readonly at: string;
  /**
   * Before the statement reaches the server, or when the server has answered and nobody has heard
   * it.
   */
  readonly when: "before" | "after";
}

/**
 * A proxy on which one connection goes silent at a statement, once. The server is not told, not
 * even by its end.
 */
async function silentProxy() {
  let armed: Silence | null = null;
  const relay = await relayTo(database.url, ({ client, database: server, end }) => {
    let isSilent = false;
    let isAnswerLost = false;
    const fallSilent = (): void => {
      armed = null;
      isSilent = true;
      client.off("close", end);
    };
    client.on("data", (chunk: Buffer) => {
      if (isSilent) return;
      if (armed !== null && chunk.includes(armed.at)) {
        if (armed.when === "before") return fallSilent();
        armed = null;
        isAnswerLost = true;
      }
      server.write(chunk);
    });
    server.on("data", (chunk: Buffer) => {
      if (isAnswerLost) fallSilent();
      if (!isSilent) client.write(chunk);
    });
  });
  relays.push(relay);
  return {
    url: relay.url,
    arm: (silence: Silence) => {
      armed = silence;
    },
    isArmed: () => armed !== null,
  };
}

const retry = { attempts: 1 };
const inWorkflow = workflow({
  name: "in-workflow",
  run: async (ctx, who: string) => {
    const move = ctx.step.transaction(
      "move",
      async (tx) => {
        await tx.query("insert into public.ledger values ($1)", [who]);
        return who;
      },
      { retry },
    );
    return `${await move} moved`;
  },
});
const inJob = job({
  name: "in-job",
  maxAttempts: 1,
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
});
const statements = { begin: "begin isolation level", outcome: "require_transaction", commit: "commit;reset" };

// Each test waits about ten seconds until PostgreSQL and the worker give the silent connection up, so they wait together.
describe.concurrent.each([
  ["step.transaction", inWorkflow, (who: string) => pawl.start(inWorkflow, who)],
  ["ctx.transaction of a job", inJob, (who: string) => pawl.start(inJob, who)],
  ["ctx.transaction of a machine", inMachine, (who: string) => pawl.start(inMachine, { who })],
])("%s", (name, definition, start) => {
  it("happens exactly once, whichever statement its connection goes silent at", async () => {
    const proxy = await silentProxy();
    const worker = await serve([definition], { url: proxy.url });
    const started: { who: string; runId: string }[] = [];
    for (const [what, at] of Object.entries(statements)) {
      for (const when of ["before", "after"] as const) {
        const who = `${name} ${when} ${what}`;
        proxy.arm({ at, when });
        started.push({ who, runId: (await start(who)).runId });
        await until(`the connection is silent ${when} ${what}`, () => !proxy.isArmed());
      }
    }
    for (const { who, runId } of started) {
      expect(await pawl.result(runId as never, { timeout: "100s" })).toBe(`${who} moved`);
      expect(await sql("select from public.ledger where who = $1", [who])).toHaveLength(1);
      expect(await pawl.runs.get(runId)).toMatchObject({ attempt: 0 });
    }
    await worker.stop();
  });
});

it.concurrent("a worker that stops while the connection of a transaction is silent leaves the run to another", async () => {
  const proxy = await silentProxy();
  const moves = (worker: string) =>
    job({
      name: "left",
      queue: "left",
      maxAttempts: 2,
      run: (ctx) =>
        ctx.transaction(async (tx) => {
          await tx.query("insert into public.ledger values ('left')");
          return worker;
        }),
    });
  const worker = await serve([moves("first")], { url: proxy.url });
  proxy.arm({ at: statements.commit, when: "before" });
  const { runId } = await pawl.start("left", null);
  await until("the connection is silent", () => !proxy.isArmed());
  await worker.stop();
  await serve([moves("second")]);
  expect(await pawl.result(runId, { timeout: "100s" })).toBe("second");
  expect(await sql("select from public.ledger where who = 'left'")).toHaveLength(1);
});

it.concurrent("a worker stops although a statement of the user's never comes back", async () => {
  const proxy = await silentProxy();
  const endless = job({
    name: "endless",
    queue: "endless",
    run: (ctx) =>
      ctx.transaction(async (tx) => {
        await tx.query("select 'endless'");
        return null;
      }),
  });
  const worker = await serve([endless], { url: proxy.url });
  proxy.arm({ at: "select 'endless'", when: "after" });
  const { runId } = await pawl.start(endless, null);
  await until("the connection is silent", () => !proxy.isArmed());
  await worker.stop();
  expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", attempt: 0 });
});
