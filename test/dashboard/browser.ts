/**
 * A real Chromium for the tests of the dashboard: the one of the machine, or Debian's package, which root
 * installs if it is missing. Each browser has an empty profile of its own and never calls home.
 */

import { spawnSync } from "node:child_process";
import { type Browser, chromium } from "playwright-core";

const programs = [
  process.env["PAWL_TEST_BROWSER"] ?? "chromium",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of the program. Null: it is not installed, and this process may not install it. */
export function findBrowser(): string | null {
  const find = (): string | null =>
    programs.find((program) => spawnSync(program, ["--version"]).status === 0) ?? null;
  const found = find();
  if (found !== null || process.getuid?.() !== 0) return found;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...given: string[]): boolean =>
    spawnSync("apt-get", given, { env, stdio: "inherit" }).status === 0;
  const install = ["install", "-y", "--no-install-recommends", "chromium"] as const;
  return apt(...install) || (apt("update") && apt(...install)) ? find() : null;
}

export async function launchBrowser(): Promise<Browser> {
  const program = findBrowser();
  if (program === null) throw new Error("there is no Chromium: npm run test:dashboard installs it");
  const executablePath = program.includes("/") ? program : `/usr/bin/${program}`;
  return chromium.launch({
    executablePath,
    headless: true,
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
