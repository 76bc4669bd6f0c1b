/** The rooms of the tests: how many files one holds, and that `test/README.md` says what each is for. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./pages.js";

const tests = join(root, "test");

const files = readdirSync(tests, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !/(^|\/)(dist|node_modules)\//.test(file),
);
const rooms = [...new Set(files.map((file) => dirname(file)))];

it("every folder of tests has at most 20 files", () => {
  const large = rooms.filter((room) => files.filter((file) => dirname(file) === room).length > 20);
  expect(large).toEqual([]);
});

it("the README of the tests names every folder that has files, and only folders that exist", () => {
  const page = readFileSync(join(tests, "README.md"), "utf8");
  const named = [...page.matchAll(/^\| `([\w/-]+)\/` /gm)].map(([, room = ""]) => room);
  expect(rooms.filter((room) => !named.includes(room))).toEqual([]);
  expect(named.filter((room) => !existsSync(join(tests, room)))).toEqual([]);
});
