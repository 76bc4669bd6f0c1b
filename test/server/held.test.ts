import { connect, hold, job, serve } from "pawl";
import { createServer } from "@pawl/server";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { silent } from "../support/engine.js";
import { until } from "../support/until.js";

const { url, sql } = await testDatabase();

const loggerTo = (texts: string[]): typeof silent =>
  ({ ...silent, warn: (_: unknown, text: string) => void texts.push(text) }) as never;

it("a held database is still through a server too: its workers hear of it, nothing is claimed or received", async () => {
  await hold({ url });
  const said: string[] = [];
  const server = await createServer({ database: url, port: 0, logger: loggerTo(said) });
  afterAll(() => server.close());
  const address = await server.listen();
  expect(said).toContainEqual(expect.stringMatching(/^pawl: this database is held/));

  const pawl = connect(address);
  afterAll(() => pawl.close());
  const heard: string[] = [];
  const mail = job({ name: "mail", run: () => "sent" });
  const worker = serve([mail], { url: address, lease: "6s", heartbeat: "300ms", logger: loggerTo(heard) });
  afterAll(() => worker.stop());
  await worker.ready;
  const { runId } = await pawl.start(mail);
  await pawl.queues.send("letters", { to: "a" });
  await until("the worker has heard of it", () => heard.some((text) => text.includes("is held")));
  expect(await pawl.queues.receive("letters", { wait: 0 })).toEqual([]);
  expect(await pawl.why(runId)).toMatchObject({ reason: "held", what: "database" });
  expect(await sql("select from runs where claim_id is not null")).toEqual([]);

  await hold.release({ url });
  expect(await pawl.result(runId, { timeout: "100s" })).toBe("sent");
  expect(await pawl.queues.receive("letters", { wait: "20s" })).toMatchObject([{ body: { to: "a" } }]);
});
