/**
 * The rooms of the library: which may import which, and how many files one holds. A room may import
 * the rooms before it, without exception.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./pages.js";

const source = join(root, "packages/pawl/src");
const rooms = [
  "values",
  "define",
  "store",
  "timing",
  "store/postgres",
  "store/postgres/fork",
  "store/http",
  "observe",
  "local",
  "run",
  "workflow",
  "worker",
  "api",
  "testing",
  "",
];

const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && statSync(join(source, file)).isFile())
  .map((file) => join(source, file));
const roomOf = (file: string): string => relative(source, dirname(file));

describe("the rooms of the library", () => {
  it("are all in this list", () => {
    expect([...new Set(files.map(roomOf))].toSorted()).toEqual(rooms.toSorted());
  });

  it.each(rooms)("%s imports only rooms before it", (room) => {
    const wrong = files
      .filter((file) => roomOf(file) === room)
      .flatMap((file) =>
        [...readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map(([, to = ""]) => {
          const target = roomOf(resolve(dirname(file), to));
          return rooms.indexOf(target) > rooms.indexOf(room) ? `${room} -> ${target}` : null;
        }),
      )
      .filter((door) => door !== null);
    expect(wrong).toEqual([]);
  });

  it.each(rooms)("%s has at most 20 files", (room) => {
    expect(files.filter((file) => roomOf(file) === room).length).toBeLessThanOrEqual(20);
  });
});
