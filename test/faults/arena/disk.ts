/** A small disk of its own for a database under test, that can be filled. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** Where it is mounted; null where mounting is not allowed. Call it before anything that uses it: it is taken away last. */
export function mountDisk(mebibytes: number): string | null {
  const place = mkdtempSync(join(tmpdir(), "pawl-disk-"));
  try {
    const options = `size=${mebibytes}m,mode=755`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", place], { stdio: "ignore" });
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

/** Takes all the space that is left, by a file in this directory; answers how to give it back. */
export function fillDisk(directory: string): () => void {
  const path = join(directory, "ballast");
  const block = Buffer.alloc(64 * 1024);
  writeFileSync(path, "");
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(path);
      const free = bavail * bsize;
      if (free === 0) break;
      writeFileSync(path, block.subarray(0, Math.min(free, block.length)), { flag: "a" });
    }
  } catch {
    // Somebody else took the rest.
  }
  return () => rmSync(path);
}
