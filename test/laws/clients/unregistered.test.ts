/** A start by a name that no worker has ever registered says so: it may be a typo. */

import { connect, job } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const other = connect(database.server ?? database.url);
afterAll(() => other.close());

const signup = job({ name: "signup", run: () => "welcome" });
await serve([signup]);

describe("a start by name", () => {
  it("answers served: false and the nearest name if nobody has registered the name", async () => {
    const { runId, ...answer } = await pawl.start("sigup", null);
    expect(answer).toEqual({ created: true, status: "running", served: false, nearest: "signup" });
    expect(await pawl.runs.get(runId)).toMatchObject({ name: "sigup", status: "running" });
    const { served, nearest } = await pawl.start("something-else", null);
    expect({ served, nearest }).toEqual({ served: false, nearest: undefined });
  });

  it("answers no warning if the name is registered, in whatever version", async () => {
    for (const version of [undefined, 1, 7]) {
      expect(await pawl.start("signup", null, { version })).not.toHaveProperty("served");
    }
  });

  it("answers it for every item of startMany, and for a start that finds an older run", async () => {
    const many = await pawl.startMany("sigup", [{ input: 1 }, { input: 2 }]);
    expect(many).toMatchObject([
      { served: false, nearest: "signup" },
      { served: false, nearest: "signup" },
    ]);
    await pawl.start("singup", null, { idempotencyKey: "one" });
    const again = await pawl.start("singup", null, { idempotencyKey: "one" });
    expect(again).toMatchObject({ created: false, served: false, nearest: "signup" });
  });

  it("answers no warning once a worker has registered the name, and still none after it stops", async () => {
    const late = job({ name: "late-comer", run: () => "here" });
    const { runId, served } = await pawl.start("late-comer", null);
    expect(served).toBe(false);
    const lateWorker = await serve([late]);
    expect(await pawl.result(runId)).toBe("here");
    expect(await pawl.start("late-comer", null)).not.toHaveProperty("served");
    await lateWorker.stop();
    expect(await other.start("late-comer", null)).not.toHaveProperty("served");
  });
});

it("a start with a definition has no warning, even before any worker has registered it", async () => {
  const early = job({ name: "early-bird", run: () => null });
  expect(await pawl.start(early, null)).not.toHaveProperty("served");
  expect((await pawl.startMany(early, [{ input: null }]))[0]).not.toHaveProperty("served");
});

it("names of Pawl's own definitions are never suggested", async () => {
  await database.sql(
    "insert into definitions (name, version, kind, queue, priority, retention, registered)" +
      " select 'pawl-signin', version, kind, queue, priority, retention, registered from definitions limit 1",
  );
  const answer = await pawl.start("pawlsignin", null);
  expect(answer.served).toBe(false);
  expect(answer).not.toHaveProperty("nearest");
});
