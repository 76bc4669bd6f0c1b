/**
 * The cached data directory: quick when it is good, never trusted when it could be somebody else's.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { trustedCache } from "../dist/trusted-cache.js";
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

describe("a template", () => {
  const base = temporaryDirectory(0o755);

  it("is made once and privately, also by two processes that start at the same moment", async () => {
    await Promise.all([startIn(base), startIn(base)]);
    expect(existsSync(join(templateIn(base), "manifest.json"))).toBe(true);
    expect(statSync(templateIn(base)).mode & 0o022).toBe(0);
    expect(statSync(join(templateIn(base), "data")).mode & 0o077).toBe(0);
    expect(statSync(join(base, cacheName)).mode & 0o066).toBe(0);
  });

  it("belongs to the user who made it, also if another user runs the servers", () => {
    const data = join(templateIn(base), "data");
    const owners = ["", "postgresql.conf", "base"].map((name) => statSync(join(data, name)).uid);
    expect(new Set(owners)).toEqual(new Set([process.getuid?.()]));
  });

  it("with a missing file is made anew", async () => {
    const file = join(templateIn(base), "data", "base", "1", "PG_VERSION");
    rmSync(file);
    await startIn(base);
    expect(existsSync(file)).toBe(true);
  });

  it("with a damaged file is made anew", async () => {
    const file = join(templateIn(base), "data", "global", "pg_control");
    const damaged = Buffer.alloc(statSync(file).size); // as large as it should be, hence complete to the eye
    writeFileSync(file, damaged);
    await startIn(base);
    expect(readFileSync(file).equals(damaged)).toBe(false);
  });
});

it("a server starts without the cache when others may write to it", async () => {
  const base = temporaryDirectory(0o755);
  mkdirSync(join(base, cacheName));
  chmodSync(join(base, cacheName), 0o777);
  await startIn(base);
  expect(readdirSync(join(base, cacheName))).toEqual([]);
});

it("a cache that is a link to elsewhere is not trusted", () => {
  const base = temporaryDirectory(0o755);
  symlinkSync(temporaryDirectory(0o700), join(base, cacheName));
  expect(trustedCache(base)).toBeUndefined();
});

it.skipIf(!isRoot)(
  "a cache of somebody else is not trusted (root is needed to give a directory away)",
  () => {
    const base = temporaryDirectory(0o755);
    mkdirSync(join(base, cacheName), { mode: 0o700 });
    expect(trustedCache(base)).toBe(join(base, cacheName));
    chownSync(join(base, cacheName), 65_534, 65_534);
    expect(trustedCache(base)).toBeUndefined();
  },
);
