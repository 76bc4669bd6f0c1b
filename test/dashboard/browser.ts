/**
 * A real Chromium for the tests of the dashboard: that of the machine; else the one that an npm package
 * brings, which needs no root; else Debian's package, which root installs. Nobody downloads it who does
 * not run these tests. Each browser has an empty profile of its own and never calls home.
 */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const named = process.env["PAWL_TEST_BROWSER"];
const programs = [
  ...(named === undefined ? [] : [named]),
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
/** The last version for Node 20. It brings a Chromium for Linux on x64. */
const packaged = "@sparticuz/chromium@143.0.4";

/** The path of the program. Null: it is not installed, and this process cannot install it. */
export function findBrowser(): string | null {
  return programs.find(starts) ?? (named === undefined ? (fromNpm() ?? fromDebian()) : null);
}

function starts(program: string): boolean {
  return spawnSync(program, ["--version"]).status === 0;
}

/** Installs the package in a folder of its own, and unpacks its Chromium there. */
function fromNpm(): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  // npm runs scripts in the root of the repository.
  const room = join(process.cwd(), "node_modules/.cache/pawl-chromium");
  const program = join(room, "chromium");
  if (existsSync(program) && starts(program)) return program;
  console.log(`There is no Chromium on this machine: installing ${packaged} for these tests`);
  mkdirSync(room, { recursive: true });
  writeFileSync(join(room, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const install = ["install", "--no-audit", "--no-fund", "--no-save", "--prefix", room, packaged];
  if (spawnSync("npm", install, { cwd: room, stdio: "inherit" }).status !== 0) return null;
  const unpack =
    'const { default: chromium } = await import("@sparticuz/chromium"); await chromium.executablePath();';
  // It unpacks into the folder of temporary files.
  const env = { ...process.env, TMPDIR: room };
  spawnSync(process.execPath, ["--input-type=module", "-e", unpack], { cwd: room, env, stdio: "inherit" });
  return starts(program) ? program : null;
}

function fromDebian(): string | null {
  if (process.getuid?.() !== 0) return null;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...given: string[]): boolean =>
    spawnSync("apt-get", given, { env, stdio: "inherit" }).status === 0;
  const install = ["install", "-y", "--no-install-recommends", "chromium"] as const;
  return apt(...install) || (apt("update") && apt(...install)) ? (programs.find(starts) ?? null) : null;
}

export async function launchBrowser(): Promise<Browser> {
  const program = findBrowser();
  if (program === null) throw new Error("there is no Chromium: npm run test:dashboard installs it");
  return chromium.launch({
    executablePath: program,
    headless: true,
    // Where the system names none, Chromium would take "en-US@posix", which it refuses itself.
    env: { ...process.env, LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // A name of this machine that browsers do not trust as they trust localhost.
      "--host-resolver-rules=MAP pawl.test 127.0.0.1",
    ],
  });
}
