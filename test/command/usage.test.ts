import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl } from "./pawl.js";

const { url } = await testDatabase({ empty: true });
const directory = mkdtempSync(join(tmpdir(), "pawl-usage-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "wrong.json"), "{ nothing");
const nowhere = "postgres://somebody:secret@127.0.0.1:1/app";

const complains = (text: string, code: number): object => ({ code, stdout: "", stderr: `pawl: ${text}\n` });

describe("a wrong call", () => {
  it.each([
    [["rnus"], "unknown command 'rnus' (did you mean runs?); see: pawl --help"],
    [["runs", "lst"], "unknown command 'lst' (did you mean list?); see: pawl runs --help"],
    [
      ["runs", "list", "--jsno"],
      "unknown option '--jsno' (did you mean --json?); see: pawl runs list --help",
    ],
    [["runs", "show"], "missing required argument 'run'; see: pawl runs show --help"],
    [
      ["--url", nowhere, "runs", "list"],
      "unknown option '--url'; options follow the whole command, such as: pawl runs list --url …",
    ],
    [
      ["runs", "list", "--limit", "many"],
      "option '--limit <number>' argument 'many' is invalid. It must be a whole number; see: pawl runs list --help",
    ],
    [
      ["migrate", "--down"],
      '--down deletes the schema "pawl" with every run in it: add --yes to confirm, or see first with --dry-run',
    ],
    [
      ["dev", "--watch", "none.ts"],
      "there is no file none.ts: --watch needs a file that exports definitions",
    ],
    [["runs", "start", "a", "--timeout", "1s"], "--timeout has no effect without --wait: add --wait"],
    [
      ["runs", "tail", "64", "--name", "a"],
      "options such as --name and --status filter all runs: leave out the id, or the filters",
    ],
  ])("%j is told in one line, and ends with 2", async (args, text) => {
    expect(await pawl(args, { url, cwd: directory })).toEqual(complains(text, 2));
  });

  it.each([
    [
      "{nope",
      /^pawl: input must be JSON, such as .* not \{nope \(.*\); @file\.json reads a file, - reads standard input\n$/,
    ],
    ["-", /^pawl: input on standard input must be JSON, .* not an empty text \(.*\n$/],
    ["@wrong.json", /^pawl: input in wrong\.json must be JSON, .* not \{ nothing \(.*\n$/],
    ["@none.json", /^pawl: cannot read input from the file none\.json: ENOENT.*\n$/],
  ])("the input %s is refused before anything is opened", async (input, text) => {
    const { code, stdout, stderr } = await pawl(["runs", "start", "a", input], {
      url: nowhere,
      cwd: directory,
    });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(text);
  });
});

describe("a database that cannot be used is told in one line:", () => {
  it("none is given", async () => {
    const text =
      "no database: give --url, set PAWL_URL or DATABASE_URL, or start a local one in this directory with: pawl dev";
    expect(await pawl(["runs", "list"], { cwd: directory })).toEqual(complains(text, 2));
  });

  it("the URL is none", async () => {
    const { code, stderr } = await pawl(["runs", "list", "--url", "localhost/app"], { cwd: directory });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^pawl: url must be .*postgres:\/\/.*\n$/);
  });

  it("nobody listens there, and the password stays out of it", async () => {
    const { code, stdout, stderr } = await pawl(["runs", "list"], { url: nowhere });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^pawl: the database cannot be used: .*ECONNREFUSED.* \(database 127\.0\.0\.1:1\/app\)\n$/,
    );
    expect(stderr).not.toContain("secret");
  });

  it("it does not exist", async () => {
    const other = new URL(url);
    other.pathname = "/nowhere";
    const { code, stderr } = await pawl(["runs", "list"], { url: other.href });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pawl: .* does not exist.* Create the database first.*nowhere\)+\n$/);
  });

  it("it has no schema", async () => {
    const text = 'the database has no schema "pawl" of Pawl yet; run: pawl migrate';
    expect(await pawl(["runs", "list"], { url })).toEqual(complains(text, 1));
    const other = 'the database has no schema "other" of Pawl yet; run: pawl migrate --schema "other"';
    expect(await pawl(["runs", "list", "--schema", "other"], { url })).toEqual(complains(other, 1));
    expect(await pawl(["runs", "list"], { url, env: { PAWL_SCHEMA: "other" } })).toEqual(complains(other, 1));
  });

  it("and with --debug the stack follows", async () => {
    const { stderr } = await pawl(["runs", "list", "--debug"], { url });
    expect(stderr).toMatch(/^pawl: the database has no schema.*\n(.|\n)*\n {4}at /);
  });
});

describe("help", () => {
  it("is printed with examples, and in colours only on a terminal", async () => {
    const plain = await pawl(["runs", "start", "--help"]);
    expect(plain.code).toBe(0);
    expect(plain.stdout).toContain("Usage: pawl runs start [options] <name> [input]");
    expect(plain.stdout).toContain(`\nExamples:\n  $ pawl runs start signup '{"email":"ada@example.com"}'\n`);
    const colored = await pawl(["runs", "start", "--help"], { env: { FORCE_COLOR: "1" } });
    expect(colored.stdout).toContain("\u001B[1mExamples:\u001B[22m");
    const both = await pawl(["runs", "start", "--help"], { env: { FORCE_COLOR: "1", NO_COLOR: "1" } });
    expect(both.stdout).not.toContain("\u001B");
  });

  it("is what a call without a command gets", async () => {
    const { code, stderr } = await pawl([]);
    expect(code).toBe(2);
    expect(stderr).toContain("Usage: pawl [options] [command]");
  });

  it("has the version of the package", async () => {
    expect(await pawl(["--version"])).toEqual({ code: 0, stdout: "0.1.0\n", stderr: "" });
  });
});
