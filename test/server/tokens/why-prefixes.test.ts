/** `why` for tokens with prefixes: it names no runs that the token may not see. */

import { connect, job, serve, type Why } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { gate } from "../../support/gate.js";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const { url } = await testDatabase();
const secrets = { billing: "billing-secret-0123456789", all: "admin-secret-0123456789" };
const { call } = await testServer({
  database: url,
  tokens: [`billing:write:names=billing-:${secrets.billing}`, `all:admin:${secrets.all}`],
});
const why = async (who: keyof typeof secrets, runId: string): Promise<Why> => {
  const headers = { authorization: `Bearer ${secrets[who]}` };
  return (await call("GET", `/v1/runs/${runId}/why`, undefined, headers)).body as Why;
};
const pawl = connect(url);
const held = gate();
const run = (): Promise<null> => held.pass().then(() => null);
const own = job({ name: "billing-charge", run });
const foreign = job({ name: "shipping-send", run });
const worker = serve([own, foreign], { url });
await worker.ready;
afterAll(async () => {
  held.open();
  await worker.stop();
  await pawl.close();
});

const executing = (runId: string): Promise<unknown> =>
  until("it executes", async () => (await pawl.runs.get(runId)).phase === "executing");

describe("why for a token with prefixes", () => {
  it("says how many slots are held, and names only the holders that it may see", async () => {
    await pawl.limits.set("gpu", { concurrent: 2 });
    const concurrency = "gpu";
    const theirs = await pawl.start(foreign, null, { concurrency });
    const mine = await pawl.start(own, null, { concurrency });
    for (const { runId } of [theirs, mine]) await executing(runId);
    const { runId } = await pawl.start(own, null, { concurrency });
    await until("it waits for a slot", async () => (await pawl.why(runId)).reason === "limit_full");
    expect(await why("billing", runId)).toMatchObject({
      reason: "limit_full",
      held: 2,
      holders: [mine.runId],
    });
    expect((await why("billing", runId)).text).not.toContain(theirs.runId);
    const holders = [mine.runId, theirs.runId];
    expect(((await why("all", runId)) as { holders?: string[] }).holders?.toSorted()).toEqual(
      holders.toSorted(),
    );
  });

  it("says that the partition key is taken, but not by which run or worker", async () => {
    const partitionKey = "customer-1";
    const holder = await pawl.start(foreign, null, { partitionKey });
    await executing(holder.runId);
    const { runId } = await pawl.start(own, null, { partitionKey });
    expect(await why("all", runId)).toMatchObject({ reason: "key_taken", holder: holder.runId });
    const hidden = await why("billing", runId);
    expect(hidden).toMatchObject({ reason: "key_taken", holder: null, worker: null });
    expect(hidden.text).toContain("a run that this token may not see has it");
    expect(JSON.stringify(hidden)).not.toContain(`"${holder.runId}"`);
    const behind = await pawl.start(own, null, { partitionKey: "customer-2" });
    await executing(behind.runId);
    const second = await pawl.start(own, null, { partitionKey: "customer-2" });
    expect(await why("billing", second.runId)).toMatchObject({ holder: behind.runId });
  });
});
