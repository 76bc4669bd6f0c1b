/**
 * Some tests always run the built packages: those of what users install (the command, the programs
 * of the documentation) and those that start programs of their own. They call `requireBuild`, so that
 * a missing or old build fails with one clear error.
 */

import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packages = ["packages/pawl", "packages/server", "packages/local-postgres", "examples"];
let isChecked = false;

export function requireBuild(): void {
  if (isChecked) return;
  for (const directory of packages) {
    const builtMs = timeOf(`${root}${directory}/dist/.tsbuildinfo`);
    const source = `${root}${directory}/src`;
    const isOld = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .some((file) => timeOf(`${source}/${file}`) > builtMs);
    if (isOld)
      throw new Error(
        `${directory}/dist is missing or older than its source, and this test runs the build. Run "npm run build" first`,
      );
  }
  isChecked = true;
}

/** When a file was last written; 0 if there is none. */
function timeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
