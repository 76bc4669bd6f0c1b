/**
 * The rooms of the library, the server and the dashboard: which may import which, how many files a room has, and how
 * long a file is. A room may import the rooms before it, without exception.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./pages.js";

const rooms = [
  "generated",
  "values",
  "define",
  "store/reports",
  "store",
  "store/driver",
  "timing",
  "store/postgres",
  "store/postgres/migrate",
  "store/postgres/fork",
  "store/http",
  "observe",
  "local",
  "heartbeat",
  "run",
  "schedules",
  "workflow",
  "worker",
  "operate",
  "api",
  "serverless",
  "testing",
  "engine",
  "",
];

const serverRooms = [
  "delivery",
  "http",
  "backend",
  "workers",
  "doctor",
  "reports",
  "routes",
  "embed",
  "",
  "command/terminal",
  "command/runs",
  "command/dev",
  "command/completion",
  "command/init",
  "command",
];

const dashboardRooms = ["format", "api", "parts", "graph", "run", "pages", ""];

const houses = [
  { name: "pawl", order: rooms },
  { name: "server", order: serverRooms },
  { name: "dashboard", order: dashboardRooms },
].map(({ name, order }) => {
  const source = join(root, "packages", name, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && statSync(join(source, file)).isFile())
    .map((file) => join(source, file));
  const roomOf = (file: string): string => relative(source, dirname(file));
  const nameOf = (file: string): string => relative(source, file);
  const filesOf = (room: string): string[] => files.filter((file) => roomOf(file) === room);
  return { name, order, files, nameOf, roomOf, filesOf };
});

describe.each(houses)("the rooms of packages/$name", ({ order, files, nameOf, roomOf, filesOf }) => {
  it("are all in this list", () => {
    expect([...new Set(files.map(roomOf))].toSorted()).toEqual(order.toSorted());
  });

  it.each(order)("%s imports only rooms before it", (room) => {
    const wrong = filesOf(room)
      .flatMap((file) =>
        [...readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map(([, to = ""]) => {
          const target = roomOf(resolve(dirname(file), to));
          return order.indexOf(target) > order.indexOf(room) ? `${room} -> ${target}` : null;
        }),
      )
      .filter((door) => door !== null);
    expect(wrong).toEqual([]);
  });

  it.each(order)("%s has at most 20 files", (room) => {
    expect(filesOf(room).length).toBeLessThanOrEqual(20);
  });

  it("have no file of more than 400 lines", () => {
    const tooLong = files.filter((file) => readFileSync(file, "utf8").trimEnd().split("\n").length > 400);
    expect(tooLong.map(nameOf)).toEqual([]);
  });
});
