import { connect } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { blocksOf } from "./pages.js";
import { compile, makeProject, runProgram } from "./program.js";

const { url } = await testDatabase();
const pawl = connect(url);
afterAll(() => pawl.close());

describe("the apps of docs/embedding.md", async () => {
  const named = blocksOf("docs/embedding.md").flatMap(({ file, text }) =>
    file === undefined ? [] : [[file, text] as const],
  );
  // What a reader does with such an app: serves it, calls it as two users and as a stranger, and stops it.
  const main = `
    import { createServer } from "node:http";
    import { app as onExpress, pawl as inExpress } from "./with-express.js";
    import { app as onFastify, pawl as inFastify } from "./with-fastify.js";
    import { app as onHono, pawl as inHono } from "./with-hono.js";
    import * as onNext from "./with-next.js";

    const server = createServer(onExpress).listen(0);
    const { port } = server.address() as { port: number };
    const fastifyUrl = await onFastify.listen({ port: 0 });
    type Send = (path: string, init?: RequestInit) => Promise<Response>;
    const sends: Record<string, Send> = {
      "with-express": (path, init) => fetch(\`http://127.0.0.1:\${port}\${path}\`, init),
      "with-fastify": (path, init) => fetch(fastifyUrl + path, init),
      "with-hono": async (path, init) => onHono.request(path, init),
      "with-next": (path, init) => {
        const request = new Request("http://localhost" + path, init);
        return path === "/" ? Promise.resolve(new Response("my app")) : onNext[request.method as "GET"](request);
      },
    };
    const as = (user: string) => ({ headers: { cookie: "session=" + user, "content-type": "application/json" } });
    const limit = { method: "PUT", body: JSON.stringify({ concurrent: 3 }) };
    for (const [name, send] of Object.entries(sends)) {
      const at = (path: string, init?: RequestInit) => send("/admin/pawl" + path, init);
      const page = await (await at("/", { headers: { accept: "text/html" } })).text();
      console.log(
        name,
        await (await send("/")).text(),
        (await at("/v1/limits")).status,
        ((await (await at("/v1/me", as("ann@x"))).json()) as { name: string }).name,
        (await at("/v1/limits/" + name, { ...limit, ...as("bob@x") })).status,
        (await at("/v1/limits/" + name, { ...limit, ...as("ann@x") })).status,
        page.includes('<base href="/admin/pawl/"'),
      );
    }
    await Promise.all([inExpress.close(), inFastify.close(), inHono.close(), onNext.close()]);
    server.close();
    await onFastify.close();
  `;
  const project = makeProject({ ...Object.fromEntries(named), "main.ts": main });
  const complaints = await compile(project);

  it("compile", () => expect(complaints).toBe(""));

  it("serve Pawl to those who may, and end", async () => {
    const env = { DATABASE_URL: url };
    const { code, stdout, stderr } = await runProgram("main.js", { cwd: project, env });
    expect(stderr).toBe("");
    expect(stdout.split("\n")).toEqual([
      "with-express my app 401 ann@x 403 200 true",
      "with-fastify my app 401 ann@x 403 200 true",
      "with-hono my app 401 ann@x 403 200 true",
      // It lets administrators in, and nobody else.
      "with-next my app 401 ann@x 401 200 true",
      "",
    ]);
    expect(code).toBe(0);
    expect(await pawl.limits.list()).toHaveLength(4);
  });
});
