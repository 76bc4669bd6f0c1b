/** The cached data directory: quick when it is good, never trusted when it could be somebody else's. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { isRoot, temporaryDirectory } from "./observe.js";
import { UserProcess } from "./user-process.js";

const cacheName = `pawl-postgres-cache-${process.getuid?.()}`;

async function startIn(base: string): Promise<UserProcess> {
  const user = new UserProcess({}, { env: { TMPDIR: base }, afterwards: "stop" });
  await user.started();
  user.child.stdin?.end();
  await user.ended();
  return user;
}

function templateIn(base: string): string {
  const names = readdirSync(join(base, cacheName)).filter((name) => name.startsWith("template-"));
  expect(names).toHaveLength(1);
  return join(base, cacheName, names[0] ?? "");
}

it.concurrent("two processes that find no template both start, and leave one template, private to its owner", async () => {
  const base = temporaryDirectory(0o755);
  await Promise.all([startIn(base), startIn(base)]);
  expect(existsSync(join(templateIn(base), "manifest.json"))).toBe(true);
  expect(statSync(templateIn(base)).mode & 0o022).toBe(0);
  expect(statSync(join(templateIn(base), "data")).mode & 0o077).toBe(0);
  expect(statSync(join(base, cacheName)).mode & 0o066).toBe(0);
});

it.concurrent("a template with missing or damaged files is made anew", async () => {
  const base = temporaryDirectory(0o755);
  await startIn(base);
  const control = join(templateIn(base), "data", "global", "pg_control");
  const { size } = statSync(control);

  rmSync(join(templateIn(base), "data", "PG_VERSION"));
  await startIn(base);
  expect(existsSync(join(templateIn(base), "data", "PG_VERSION"))).toBe(true);

  writeFileSync(control, Buffer.alloc(size)); // as large as it should be, hence complete to the eye
  await startIn(base);
  await startIn(base);
});

it.concurrent("a cache that others may write to is not used", async () => {
  const base = temporaryDirectory(0o755);
  mkdirSync(join(base, cacheName));
  chmodSync(join(base, cacheName), 0o777);
  await startIn(base);
  expect(readdirSync(join(base, cacheName))).toEqual([]);
});

it.concurrent("a cache that is a link to elsewhere is not used", async () => {
  const base = temporaryDirectory(0o755);
  const elsewhere = temporaryDirectory(0o700);
  symlinkSync(elsewhere, join(base, cacheName));
  await startIn(base);
  expect(readdirSync(elsewhere)).toEqual([]);
});

it.skipIf(!isRoot).concurrent(
  "a cache that belongs to somebody else is not used (needs root to give a directory away)",
  async () => {
    const base = temporaryDirectory(0o755);
    mkdirSync(join(base, cacheName), { mode: 0o700 });
    chownSync(join(base, cacheName), 65_534, 65_534);
    await startIn(base);
    expect(readdirSync(join(base, cacheName))).toEqual([]);
  },
);
