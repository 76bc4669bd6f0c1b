/** The handlers of docs/serverless.md, called as their platforms call them. */

import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { blocksOf } from "./pages.js";
import { compile, makeProject, runProgram } from "./program.js";

const { url } = await testDatabase();
const pawl = connect(url);
afterAll(() => pawl.close());

const main = `
  import { GET } from "./route.js";
  import { handler } from "./lambda.js";

  const request = (secret: string) => new Request("http://localhost/api/cron", { headers: { authorization: \`Bearer \${secret}\` } });
  const refused = await GET(request("wrong"));
  const answered = process.argv[2] === "route" ? await (await GET(request("right"))).json() : undefined;
  const context = { getRemainingTimeInMillis: () => 30_000 };
  console.log(JSON.stringify(answered ?? await handler({}, context)), refused.status);
`;

describe("docs/serverless.md", async () => {
  const files = blocksOf("docs/serverless.md").flatMap(({ file, text }) =>
    file === undefined ? [] : [[file, text] as const],
  );
  const project = makeProject({ ...Object.fromEntries(files), "main.ts": main });
  const complaints = await compile(project);
  const call = (what: string) =>
    runProgram("main.js", { cwd: project, args: [what], env: { DATABASE_URL: url, CRON_SECRET: "right" } });

  it("has handlers that compile", () => {
    expect(complaints).toBe("");
  });

  it("the cron route works off what is due for whoever knows the secret", async () => {
    const { runId } = await pawl.start("send-mail", "grace@example.com");
    const { stdout, stderr, code } = await call("route");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe('{"completed":1,"failed":0,"cancelled":0,"isIdle":true,"nextDueAt":null} 401\n');
    expect(await pawl.result(runId)).toBe("sent to grace@example.com");
  });

  it("the Lambda function works off what is due, and says whether to call it again", async () => {
    const { runId } = await pawl.start("send-mail", "alan@example.com");
    const { stdout, stderr, code } = await call("lambda");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe('{"again":false} 401\n');
    expect(await pawl.result(runId)).toBe("sent to alan@example.com");
  });
});
