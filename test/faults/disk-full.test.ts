import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "./arena.js";
import { wait } from "./wait.js";

/** A small disk of its own; null where mounting is not allowed. */
function mountDisk(): string | null {
  const place = mkdtempSync(join(tmpdir(), "pawl-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=300m,mode=755", "tmpfs", place], { stdio: "ignore" });
  } catch {
    rmSync(place, { recursive: true });
    return null;
  }
  // Registered first, hence run last.
  afterAll(() => {
    execFileSync("umount", ["-l", place]);
    rmSync(place, { recursive: true });
  });
  return place;
}

const disk = mountDisk();
if (disk === null) console.info("the test of a full disk is skipped: it has to mount a small one, as root");

it.skipIf(disk === null)(
  "the disk of the database is full, then freed: everything goes on, and nothing acknowledged is lost",
  async () => {
    const arena = await makeArena({
      directory: join(disk!, "data"),
      settings: { max_wal_size: "64MB", min_wal_size: "32MB" },
    });
    const { server, fleet, load } = arena;
    await fleet.grow(2);
    const ballast = join(disk!, "ballast");
    const filling = async (): Promise<void> => {
      for (let times = 0; times < 2; times++) {
        await wait(1_500);
        fill(ballast);
        await wait(3_000);
        rmSync(ballast);
        // A server that could not write its log has ended.
        await server.start();
      }
    };
    await load.during(filling());
    await arena.quiet();
    expect(load.history.unknown).toBeGreaterThan(0);
    expect(fleet.deaths()).toBe(0);
    await arena.judge();
  },
  180_000,
);

/** Takes all the space that is left. */
function fill(path: string): void {
  const block = Buffer.alloc(64 * 1024);
  writeFileSync(path, "");
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(path);
      const free = bavail * bsize;
      if (free === 0) return;
      writeFileSync(path, block.subarray(0, Math.min(free, block.length)), { flag: "a" });
    }
  } catch {
    // Somebody else took the rest.
  }
}
