import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { connect, job, serve } from "pawl";
import { testDatabase } from "../support/database.js";
import { proxyTo } from "../support/proxies/proxy.js";
import { blocksOf, rowNames, sectionOf } from "./pages.js";
import { compile, makeProject, runProgram } from "./program.js";

const page = "docs/transactions.md";
const blocks = blocksOf(page);
const database = await testDatabase();
const { sql, url } = database;
await sql("create table public.users (email text primary key)");

const pawl = connect(url);
afterAll(() => pawl.close());

describe("the libraries of docs/transactions.md", async () => {
  const named = blocks.flatMap(({ file, text }) => (file === undefined ? [] : [[file, text] as const]));
  const libraries = named.map(([file]) => file.replace(".ts", "")).filter((name) => name.startsWith("with-"));
  // What a reader does with such a module: calls it, and executes what it has started.
  const main = `import { serve } from "pawl";
    import { pawl, welcome } from "./welcome.js";
    const { signUp } = (await import(process.argv[2]!)) as typeof import("./with-kysely.js");
    const worker = serve([welcome]);
    const { runId } = await signUp(process.argv[3]!);
    console.log(await pawl.result(runId));
    const again = await signUp(process.argv[3]!).catch((error: Error) => error);
    console.log(again instanceof Error);
    await worker.stop();
    process.exit(0); // the pools of the examples are open
  `;
  const project = makeProject({ ...Object.fromEntries(named), "main.ts": main });
  const complaints = await compile(project);
  // By TCP: libraries differ in how they are told of a socket.
  const { url: tcp } = await proxyTo(url);

  it("are all that Pawl works with, and compile", () => {
    expect(complaints).toBe("");
    expect(libraries).toEqual([
      "with-postgres-js",
      "with-kysely",
      "with-drizzle",
      "with-knex",
      "with-prisma",
    ]);
  });

  it.each(libraries)("%s does what the guide says", async (name) => {
    const email = `${name}@example.com`;
    const { code, stdout, stderr } = await runProgram("main.js", {
      cwd: project,
      args: [`./${name}.js`, email],
      env: { DATABASE_URL: tcp },
    });
    expect(stdout, stderr).toBe(`a letter to ${email}\ntrue\n`);
    expect(code).toBe(0);
    expect(await sql("select from public.users where email = $1", [email])).toHaveLength(1);
    expect(await sql("select from runs where input ->> 'email' = $1", [email])).toHaveLength(1);
  });
});

describe("the SQL of docs/transactions.md", () => {
  it("starts what the guide says", async () => {
    const welcome = job({ name: "welcome", run: (_ctx, input: { email: string }) => input.email });
    const worker = serve([welcome], { url });
    await worker.ready;
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const { text } of blocks.filter(({ language }) => language === "sql")) await client.query(text);
    await client.end();
    const { runs } = await pawl.runs.list({ name: "welcome", limit: 100 });
    const emails = runs.map(({ input }) => (input as { email: string }).email);
    expect(emails).toEqual(expect.arrayContaining(["grace@example.com", "alan@example.com"]));
    expect(emails.filter((email) => email === "grace@example.com")).toHaveLength(2);
    await worker.stop();
  });

  it("names every argument of start, and every code", async () => {
    const [row] = await sql<{ names: string[] }>(
      "select proargnames as names from pg_proc where proname = 'start' and pronamespace = 'pawl'::regnamespace and prorettype = 'bigint'::regtype",
    );
    const names = rowNames(sectionOf(page, "Plain SQL"));
    expect(names).toEqual([...row!.names, "PW404", "PW409", "PW413", "PW422"]);
  });
});
