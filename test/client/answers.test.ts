import { createServer, type ServerResponse } from "node:http";
import { connect, Unavailable } from "pawl";
import { afterAll, describe, expect, it } from "vitest";

/** What a run with this id is answered with. */
const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "1": (response) => response.writeHead(302, { location: "/elsewhere", "content-length": 0 }).end(),
  "2": (response) => response.writeHead(301, { location: "/elsewhere" }).end("<html>moved</html>"),
  "3": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
    response.write('{"runId":');
    setTimeout(() => response.destroy(), 10);
  },
  "4": (response) => response.end("<html>hello</html>"),
  "5": (response) => response.writeHead(503).end(),
  "6": (response) => response.destroy(),
};

const asked: string[] = [];
const server = createServer(({ url = "" }, response) => {
  asked.push(url);
  answers[url.split("/").at(-1)!]!(response);
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const { port } = server.address() as { port: number };
const pawl = connect(`http://127.0.0.1:${port}`);
afterAll(async () => {
  await pawl.close();
  server.close();
});

describe("what is no answer of a server is Unavailable, and says why", () => {
  it.each([
    ["a redirect, which is not followed", "1", "unexpected redirect"],
    ["a redirect with a page", "2", "unexpected redirect"],
    ["a connection that is cut in the middle of an answer", "3", "cannot be reached"],
    ["a page instead of JSON", "4", "the answer is not JSON"],
    ["a proxy that has nobody behind it", "5", "503"],
    ["a connection that is closed without an answer", "6", "cannot be reached"],
  ])("%s", async (_what, runId, message) => {
    const error = await pawl.runs.get(runId).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Unavailable);
    expect((error as Unavailable).message).toContain(message);
    expect(asked.filter((url) => !url.startsWith("/v1/runs/"))).toEqual([]);
  });

  it("a start is not sent twice where nobody knows what became of the first", async () => {
    asked.length = 0;
    const cut = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.destroy();
    });
    await new Promise<void>((listening) => cut.listen(0, "127.0.0.1", listening));
    const away = connect(`http://127.0.0.1:${(cut.address() as { port: number }).port}`);
    await expect(away.start("job", null)).rejects.toThrow(Unavailable);
    expect(asked).toHaveLength(1);
    await away.close();
    cut.close();
  });
});
