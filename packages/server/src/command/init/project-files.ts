/**
 * The files of a new project, by their paths: a job and a workflow, a worker, a script that starts a
 * run, and a test. A test compiles and runs them. Pure.
 */

export interface ProjectText {
  /** The name of the package. */
  readonly name: string;
  /** The version of Pawl. */
  readonly version: string;
}

/** The scripts of package.json. */
export const scripts = {
  dev: "pawl dev --watch src/definitions.ts",
  worker: "tsx src/worker.ts",
  start: "tsx src/start.ts",
  test: "node --import tsx --test test/*.test.ts",
  check: "tsc",
  migrate: "pawl migrate",
};

export const dependenciesOf = (version: string): Record<string, string> => ({ pawl: `^${version}` });

export const devDependenciesOf = (version: string): Record<string, string> => ({
  "@pawl/local-postgres": `^${version}`,
  "@pawl/server": `^${version}`,
  "@types/node": "^20.19.0",
  tsx: "^4.19.0",
  typescript: "^7.0.0",
});

export function projectFiles({ name, version }: ProjectText): Record<string, string> {
  return {
    "package.json": json({
      name,
      private: true,
      type: "module",
      scripts,
      dependencies: dependenciesOf(version),
      devDependencies: devDependenciesOf(version),
      engines: { node: ">=20.19" },
    }),
    "tsconfig.json": json({
      compilerOptions: {
        target: "es2023",
        lib: ["es2023", "esnext.disposable"],
        module: "nodenext",
        types: ["node"],
        strict: true,
        noUncheckedIndexedAccess: true,
        verbatimModuleSyntax: true,
        skipLibCheck: true,
        noEmit: true,
      },
      include: ["src", "test"],
    }),
    ".gitignore": "node_modules/\n.pawl/\n.env\n",
    "README.md": readme(name),
    "src/definitions.ts": definitions,
    "src/worker.ts": worker,
    "src/start.ts": start,
    "test/definitions.test.ts": test,
  };
}

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

const definitions = `import { job, workflow } from "pawl";

/** A job is one function. If it throws, Pawl retries it with backoff. */
export const sendMail = job({
  name: "send-mail",
  run: (_ctx, input: { to: string; subject: string }) => {
    console.log("mail to", input.to + ":", input.subject);
    return { sent: true };
  },
});

/** A workflow is an async function. Pawl records each step: after a crash it goes on from there. */
export const signup = workflow({
  name: "signup",
  run: async ({ step }, input: { email: string }) => {
    const user = await step.run("create-user", () => ({ id: 42, email: input.email }));
    await step.sleep("settle-in", "2s"); // or "7d": a sleeping run is only a row in Postgres
    await step.invoke("welcome", sendMail, { to: user.email, subject: "Welcome!" });
    return { userId: user.id, welcomed: true };
  },
});
`;

const worker = `// A worker executes runs. Start as many as you like. In development, \`npm run dev\` has one.
import { serve } from "pawl";
import * as definitions from "./definitions.js";

const worker = serve(Object.values(definitions));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void worker.stop());
await worker.ready;
console.log("serving");
`;

const start = `// Starts a run and prints its result. Your application does this where it handles a request.
import { connect } from "pawl";
import { signup } from "./definitions.js";

const email = process.argv[2] ?? "ada@example.com";
const pawl = connect();
const { runId } = await pawl.start(signup, { email });
console.log("started run", runId + ": a worker executes it (npm run dev, or npm run worker)");
console.log(await pawl.result(runId));
await pawl.close();
`;

const test = `import assert from "node:assert/strict";
import { test } from "node:test";
import { testPawl } from "pawl/testing";
import { sendMail, signup } from "../src/definitions.js";

test("a signup sends a welcome once the user has settled in", async () => {
  await using t = await testPawl({ definitions: [signup, sendMail] });
  const { runId } = await t.pawl.start(signup, { email: "ada@example.com" });

  await t.drain(); // until every run waits
  assert.equal((await t.pawl.runs.get(runId)).phase, "awaiting_signal");

  await t.advance("2s"); // the clock of a test stands still until you move it
  assert.deepEqual(await t.pawl.result(runId), { userId: 42, welcomed: true });
});
`;

const readme = (name: string): string => `# ${name}

Durable jobs and workflows on PostgreSQL, with [Pawl](node_modules/pawl/README.md).

| command           | effect                                                                     |
| ----------------- | -------------------------------------------------------------------------- |
| \`npm run dev\`     | a local Postgres, a worker that follows your changes, and the dashboard    |
| \`npm start\`       | starts a run and prints its result; needs \`npm run dev\` in another terminal |
| \`npm test\`        | runs the tests, each on a database of its own, with a clock that they move |
| \`npm run check\`   | checks the types                                                           |
| \`npm run worker\`  | a worker alone, as in production                                           |
| \`npm run migrate\` | creates or updates Pawl's schema in your own database                      |

- \`src/definitions.ts\`: the job and the workflow. Begin here.
- \`src/worker.ts\`: executes runs.
- \`src/start.ts\`: starts a run.
- \`test/definitions.test.ts\`: tests the workflow.

Without \`DATABASE_URL\`, Pawl uses a local Postgres with its data in \`.pawl/\`. To use your own, set
\`DATABASE_URL=postgres://…\` and call \`npm run migrate\` once per deploy.
`;
