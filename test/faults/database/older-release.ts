/**
 * An older release of Pawl, as users have it installed: the packed tarball in `test/fixtures`, unpacked into a folder of
 * its own, with the worker program and the load of the fault tests beside it. `npm run pack:release` makes the tarball of a release.
 */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const fixtures = join(root, "test/fixtures");

export interface OlderRelease {
  readonly version: string;
  /** Its worker program, for `fleet.grow`. */
  readonly program: string;
  /** Its client under load (`arena/load.ts`), as a module to import. */
  readonly load: string;
  /** The folder of the package. */
  readonly package: string;
}

export async function unpackOlderRelease(): Promise<OlderRelease> {
  const [tarball] = (await readdir(fixtures)).filter((name) => /^pawl-.*\.tgz$/.test(name)).toSorted();
  if (tarball === undefined) throw new Error("test/fixtures has no tarball of a release");
  const folder = await mkdtemp(join(tmpdir(), "pawl-older-release-"));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "pawl"), { recursive: true });
  const from = ["-xzf", join(fixtures, tarball), "-C", join(modules, "pawl"), "--strip-components=1"];
  await promisify(execFile)("tar", from);
  // Its dependencies, and those of the worker program, are the ones that are installed here.
  for (const name of ["pg", "@opentelemetry", "@standard-schema"]) {
    await symlink(join(root, "node_modules", name), join(modules, name), "dir");
  }
  await cp(join(root, "test/dist/faults/programs"), join(folder, "programs"), { recursive: true });
  await cp(join(root, "test/dist/faults/arena"), join(folder, "arena"), { recursive: true });
  await cp(join(root, "test/package.json"), join(folder, "package.json"));
  return {
    version: tarball.slice("pawl-".length, -".tgz".length),
    program: join(folder, "programs/worker.js"),
    load: pathToFileURL(join(folder, "arena/load.js")).href,
    package: join(modules, "pawl"),
  };
}
