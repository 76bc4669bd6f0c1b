import { connect, job, NonRetryable, type Page, type Run, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url, sql } = await testDatabase();
const greet = job({
  name: "greet",
  run: (_ctx, input: { name: string }) => {
    if (input.name === "") {
      throw new NonRetryable("nobody is there", { cause: new TypeError("no name\u001B[31m") });
    }
    return `Hello, ${input.name}!`;
  },
});
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const worker = serve([greet], { url, logger: silent });
const client = connect(url);
afterAll(() => client.close());
const ada = await client.start(greet, { name: "Ada" }, { idempotencyKey: "ada" });
await client.result(ada.runId);
const nobody = await client.start(greet, { name: "" });
await client.result(nobody.runId).catch(() => {});
await worker.stop();
const later = await client.start(greet, { name: "later" }, { delay: "1h" });
// Times that a test can know.
await sql(
  "update runs set inserted_at = '2026-01-31T12:00:00Z'::timestamptz + (id - $1) * interval '1 second'" +
    ", completed_at = case when completed_at is not null then '2026-01-31T12:00:01.5Z'::timestamptz + (id - $1) * interval '1 second' end" +
    ", eligible_at = '2026-01-31T13:00:00Z', expires_at = case when completed_at is not null then '2026-03-02T12:00:00Z'::timestamptz end",
  [ada.runId],
);
const startOf = (runId: string): string =>
  new Date(Date.parse("2026-01-31T12:00:00Z") + (Number(runId) - Number(ada.runId)) * 1000).toISOString();

describe("runs list", () => {
  it("is an aligned table when it is piped, with whole times and nothing cut", async () => {
    const { code, stdout, stderr } = await pawl(["runs", "list"], { url });
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(
      [
        "RUN  NAME     STATUS     STEP  STARTED                   TOOK  ERROR",
        `${later.runId.padEnd(5)}greet@1  runnable         ${startOf(later.runId)}`,
        `${nobody.runId.padEnd(5)}greet@1  failed           ${startOf(nobody.runId)}  1.5s  NonRetryable: nobody is there`,
        `${ada.runId.padEnd(5)}greet@1  completed        ${startOf(ada.runId)}  1.5s`,
        "",
      ].join("\n"),
    );
  });

  it("has colours and distances in time on a terminal, and is cut to its width", async () => {
    const { stdout } = await pawl(["runs", "list", "--status", "failed"], { url, env: { FORCE_COLOR: "1" } });
    const [head, row] = stdout.split("\n");
    expect(head?.startsWith("\u001B[1mRUN\u001B[22m")).toBe(true);
    expect(row).toContain("\u001B[31mfailed\u001B[39m");
    expect(row).toMatch(/ \d+d( \d+h)? ago /);
    expect(row).not.toContain("2026-");
  });

  it("is one document as JSON, and pages by its cursor", async () => {
    const first = await pawlJson<Page>(["runs", "list", "--limit", "2"], { url });
    expect(first.runs.map(({ runId }) => runId)).toEqual([later.runId, nobody.runId]);
    const second = await pawlJson<Page>(["runs", "list", "--limit", "2", "--cursor", first.cursor ?? ""], {
      url,
    });
    expect(second.runs.map(({ runId }) => runId)).toEqual([ada.runId]);
    expect(second.cursor).toBeNull();
    const { stdout } = await pawl(["runs", "list", "--limit", "2"], { url });
    expect(stdout).toContain(`\nmore: --cursor ${first.cursor}\n`);
  });

  it("filters by status, and by time as ISO 8601 or a duration before now", async () => {
    const list = async (...args: string[]): Promise<string[]> =>
      (await pawlJson<Page>(["runs", "list", ...args], { url })).runs.map(({ runId }) => runId);
    expect(await list("--status", "completed", "--name", "greet", "--version", "1")).toEqual([ada.runId]);
    expect(await list("--until", startOf(nobody.runId))).toEqual([ada.runId]);
    expect(await list("--input", '{"name":"Ada"}')).toEqual([ada.runId]);
    expect(await list("--since", "1h")).toEqual([]);
    const { code, stderr } = await pawl(["runs", "list", "--since", "yesterday"], { url });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^pawl: since must be .*\n$/) as string]);
    const wrong = await pawl(["runs", "list", "--status", "over"], { url });
    expect(wrong.stderr).toContain("Allowed choices are running, completed, failed, cancelled, runnable");
  });
});

describe("runs show", () => {
  it("shows the fields of a run", async () => {
    const { stdout } = await pawl(["runs", "show", ada.runId], { url });
    expect(stdout).toBe(`run              ${ada.runId}
definition       greet@1 (job)
status           completed
queue            default
idempotency key  ada
started          2026-01-31T12:00:00.000Z
completed        2026-01-31T12:00:01.500Z
took             1.5s
kept until       2026-03-02T12:00:00.000Z
input            {
                   "name": "Ada"
                 }
output           "Hello, Ada!"
`);
  });

  it("shows the error of a failed run with its stack and its causes, and no control characters", async () => {
    const { stdout } = await pawl(["runs", "show", nobody.runId], { url });
    const frame = String.raw`\n {16}at Object\.run \(.*looks\.test\.[jt]s:\d+:\d+\)`;
    const cause = String.raw`\n {12}caused by TypeError: no name\\u001b\[31m`;
    expect(stdout).toMatch(new RegExp(`error {7}NonRetryable: nobody is there${frame}${cause}${frame}\n$`));
  });

  it("says of a run that is under way why it does not go on", async () => {
    await sql("update runs set eligible_at = now() - interval '1 second' where id = $1", [later.runId]);
    const { stdout } = await pawl(["runs", "show", later.runId], { url });
    expect(stdout).toContain("status      running (runnable)\n");
    expect(stdout).toContain(`why         run ${later.runId} is due, but no live worker serves greet@1\n`);
  });

  it("is the run as JSON", async () => {
    const { startedAt, ...run } = await pawlJson<Run>(["runs", "show", nobody.runId], { url });
    expect(startedAt).toBe(startOf(nobody.runId));
    expect(run).toMatchObject({
      runId: nobody.runId,
      name: "greet",
      status: "failed",
      error: { message: "nobody is there" },
    });
  });
});
