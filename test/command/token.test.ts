import { createHash } from "node:crypto";
import { createServer } from "@pawl/server";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
interface Created {
  readonly name: string;
  readonly token: string;
  readonly entry: string;
}

describe("pawl token create", () => {
  it("prints a token that is hard to guess, and the entry that lets it in", async () => {
    const created = await pawlJson<Created>(["token", "create", "--scope", "write", "--name", "web"]);
    expect(created.name).toBe("web");
    expect(created.token).toMatch(/^pawl_[\w-]{43}$/);
    const hash = createHash("sha256").update(created.token).digest("hex");
    expect(created.entry).toBe(`web:write:sha256:${hash}`);
    const server = await createServer({ database: url, port: 0, tokens: [created.entry] });
    const ask = async (token: string) =>
      (await server.app.inject({ url: "/v1/runs", headers: { authorization: `Bearer ${token}` } }))
        .statusCode;
    expect([await ask(created.token), await ask(hash)]).toEqual([200, 401]);
    await server.close();
  });

  it("takes scopes and prefixes, and gives each token another name and secret", async () => {
    const args = [
      "token",
      "create",
      "--scope",
      "start+worker",
      "--names",
      "billing-+invoice-",
      "--queues",
      "billing",
    ];
    const [first, second] = [await pawlJson<Created>(args), await pawlJson<Created>(args)];
    expect(first.entry).toMatch(
      /^start-worker-[0-9a-f]{4}:start\+worker:names=billing-\+invoice-:queues=billing:sha256:[0-9a-f]{64}$/,
    );
    expect(second.token).not.toBe(first.token);
  });

  it("prints two lines, and what to do with them beside", async () => {
    const { code, stdout, stderr } = await pawl(["token", "create", "--scope", "read"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^token: pawl_[\w-]{43}\nentry: read-[0-9a-f]{4}:read:sha256:[0-9a-f]{64}\n$/);
    expect(stderr).toContain("does not print it again");
  });

  it.each([
    [["--scope", "reed"], /has the unknown scope "reed"; scopes are start, read, write, worker, admin/],
    [["--scope", "read", "--name", "a:b"], /the name of a token must be/],
    [["--scope", "read", "--names", "Billing"], /the prefix "Billing" in names=/],
    [["--scope", "read", "--queues", ""], /the prefix "" in queues=/],
    [[], /required option '--scope <scopes>' not specified/],
  ])("refuses %j", async (args, message) => {
    const { code, stdout, stderr } = await pawl(["token", "create", ...args]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });
});
