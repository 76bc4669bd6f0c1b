/**
 * `npm run test:runtimes`: an app of Next.js with the app router, built for production without options:
 * a route handler that starts a run, a cron route that works runs off, and a worker beside it.
 */

import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Program, startProgram } from "../../docs/program.js";
import { requireBuild } from "../../support/built.js";
import { testDatabase } from "../../support/database.js";
import { lastingPort } from "../../support/lasting-port.js";
import { until } from "../../support/until.js";
import { installed } from "../project.js";

requireBuild();
const database = await testDatabase();
const minutes = 60_000;

const files: Record<string, string> = {
  "jobs.ts": `import { job } from "pawl";
    export const greet = job({ name: "greet", run: (_ctx, name: string) => "hello " + name });`,
  "app/layout.tsx": `import type { ReactNode } from "react";
    export default function Layout({ children }: { children: ReactNode }) {
      return <html lang="en"><body>{children}</body></html>;
    }`,
  "app/page.tsx": `export default function Page() { return <p>orders</p>; }`,
  "app/api/orders/route.ts": `import { connect } from "pawl";
    import { greet } from "../../../jobs";
    const pawl = connect();
    export async function POST(request: Request) {
      const { runId } = await pawl.start(greet, await request.json());
      return Response.json({ runId });
    }
    export async function GET(request: Request) {
      const runId = new URL(request.url).searchParams.get("run")!;
      return Response.json({ result: await pawl.result(runId) });
    }`,
  "app/api/cron/route.ts": `import { runUntilIdle } from "pawl";
    import { greet } from "../../../jobs";
    export const dynamic = "force-dynamic";
    export async function GET() {
      return Response.json(await runUntilIdle([greet], { budget: "60s" }));
    }`,
  "worker.ts": `import { serve } from "pawl";
    import { greet } from "./jobs";
    const worker = serve([greet]);
    void worker.ready.then(() => console.log("ready"));
    process.stdin.resume().once("end", () => void worker.stop());`,
};

describe("an app of Next.js", () => {
  it(
    "starts runs, works them off by cron, and gets results of a worker",
    { timeout: 15 * minutes },
    async () => {
      const packages = [
        "next@16",
        "react",
        "react-dom",
        "typescript@5",
        "@types/react",
        "@types/node",
        "tsx",
      ];
      const { folder, run } = await installed(packages, undefined);
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), text);
      }
      const exclude = {
        compilerOptions: { strict: true, moduleResolution: "bundler", module: "esnext" },
        exclude: ["app.ts"],
      };
      await writeFile(join(folder, "tsconfig.json"), JSON.stringify(exclude));
      const env = { DATABASE_URL: database.directUrl, NODE_ENV: "production" };
      await run("env", `DATABASE_URL=${database.directUrl}`, "npx", "next", "build");
      const port = await lastingPort();
      const next = startProgram("node_modules/next/dist/bin/next", {
        cwd: folder,
        env,
        args: ["start", "--hostname", "127.0.0.1", "--port", String(port)],
      });
      const at = `http://127.0.0.1:${port}/api`;
      const start = async (name: string): Promise<string> => {
        const answer = await fetch(`${at}/orders`, { method: "POST", body: JSON.stringify(name) });
        return ((await answer.json()) as { runId: string }).runId;
      };
      const result = async (runId: string): Promise<unknown> =>
        (await fetch(`${at}/orders?run=${runId}`)).json();
      let worker: Program | undefined;
      try {
        await until("it listens", () => fetch(at).catch(() => null));
        const first = await start("cron");
        expect(await (await fetch(`${at}/cron`)).json()).toMatchObject({ completed: 1, isIdle: true });
        expect(await result(first)).toEqual({ result: "hello cron" });
        worker = startProgram("node_modules/tsx/dist/cli.mjs", { cwd: folder, env, args: ["worker.ts"] });
        await until("the worker is ready", () => worker!.stdout().includes("ready"));
        expect(await result(await start("worker"))).toEqual({ result: "hello worker" });
      } finally {
        worker?.process.stdin!.end();
        next.process.kill();
      }
      expect(await worker.ended).toMatchObject({ code: 0, stderr: "" });
    },
  );
});
