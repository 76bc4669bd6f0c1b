import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { databaseState } from "pawl";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { requireBuild } from "../support/built.js";
import { copyName } from "../support/copies.js";
import { testDatabase } from "../support/database.js";

requireBuild();
const { url } = await testDatabase();
const bin = fileURLToPath(new URL("../../packages/server/bin/pawl.js", import.meta.url));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command to its end, on this database. */
const pawl = (args: readonly string[], database = url): Promise<Ended> =>
  new Promise((resolve) => {
    const env = { PATH: process.env["PATH"], NO_COLOR: "1", DATABASE_URL: database };
    execFile(process.execPath, [bin, ...args], { env }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1,
        stdout,
        stderr,
      });
    });
  });

/** The URL with a password, which the server does not ask for. */
function withPassword(): string {
  const secret = new URL(url);
  secret.password = "hunter2";
  return secret.href;
}

const nameOf = (text: string): string | null => new pg.Client({ connectionString: text }).database ?? null;

describe("pawl fork", () => {
  it("prints the URL of the copy without the password, and how long the original stood still", async () => {
    const name = copyName();
    const { code, stdout, stderr } = await pawl(["fork", name], withPassword());
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [first, last, ...rest] = stdout.trimEnd().split("\n");
    expect(first).toMatch(new RegExp(`^made ${name}; the original was paused for \\d+(\\.\\d)?m?s$`));
    expect(rest).toEqual([]);
    expect(nameOf(last!)).toBe(name);
    expect(stdout).not.toContain("hunter2");
    expect(await databaseState({ url: last! })).toMatchObject({ isCopy: true, isHeld: false });
  });

  it("prints JSON, keeps a held copy still, and adopts it", async () => {
    const name = copyName();
    const { stdout } = await pawl(["fork", name, "--held", "--json"], withPassword());
    const made = JSON.parse(stdout) as { url: string };
    expect(made).toEqual({
      name,
      url: expect.not.stringContaining("hunter2"),
      held: true,
      pausedMs: expect.any(Number),
      method: expect.any(String),
      notes: [],
    });
    expect((await pawl(["doctor"], made.url)).stdout).toMatch(/^wrong +identity +this database is a copy/m);
    const adopted = await pawl(["fork", "adopt", "--url", made.url]);
    expect(adopted).toEqual({
      code: 0,
      stdout: "adopted: workers no longer warn that it is a copy; work resumes\n",
      stderr: "",
    });
    expect(JSON.parse((await pawl(["fork", "adopt", "--json"], made.url)).stdout)).toEqual({
      wasHeld: false,
      wasCopy: false,
    });
    expect((await pawl(["doctor"], made.url)).stdout).toMatch(/^ok +identity/m);
  });

  it("says in one line what is wrong", async () => {
    expect(await pawl(["fork", nameOf(url)!])).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^pawl: there is a database .* already.*\n$/),
    });
    expect(await pawl(["fork"])).toMatchObject({ code: 2, stderr: expect.stringContaining("'name'") });
    expect(await pawl(["fork", "a b"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("name must be"),
    });
    expect(await pawl(["fork", "x", "--url", "http://localhost:1"])).toMatchObject({ code: 2, stdout: "" });
  });
});

describe("pawl hold", () => {
  it("keeps a database still and lets it go on", async () => {
    expect((await pawl(["hold"])).stdout).toBe("held: workers execute nothing until: pawl hold --release\n");
    expect((await pawl(["hold"])).stdout).toBe(
      "already held: workers execute nothing until: pawl hold --release\n",
    );
    expect((await pawl(["doctor"])).stdout).toMatch(/^note +held/m);
    expect(JSON.parse((await pawl(["hold", "--release", "--json"])).stdout)).toEqual({
      held: false,
      changed: true,
    });
    expect((await pawl(["hold", "--release"])).stdout).toBe("not held: nothing to do\n");
  });
});
