/**
 * Gets `bench/peers` ready: installs the peers at their pinned versions if they are not there yet,
 * and type-checks the programs against them. Their packages are not part of the main install.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { nodePath, peersDirectory } from "./program.js";

export function prepare(): void {
  if (!isInstalled()) install();
  typeCheck();
}

/** Every dependency is there at its pinned version, the Node.js of npm included. */
function isInstalled(): boolean {
  if (!existsSync(nodePath)) return false;
  return Object.entries(pinnedVersions()).every(([name, version]) => {
    try {
      return (readJson(`node_modules/${name}/package.json`) as { version: string }).version === version;
    } catch {
      return false;
    }
  });
}

/** The versions of the contestants, for the report. */
export function pinnedVersions(): Record<string, string> {
  return (readJson("package.json") as { dependencies: Record<string, string> }).dependencies;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(`${peersDirectory}${path}`, "utf8"));
}

function install(): void {
  console.log("installing the peers into bench/peers …");
  if (!npm("ci")) {
    console.log("npm ci failed; trying npm install …");
    if (!npm("install")) throw new Error("the peers could not be installed into bench/peers");
  }
  if (!existsSync(nodePath))
    throw new Error("the npm package `node` brought no Node.js: is its install script allowed to run?");
}

function npm(command: string): boolean {
  const args = [command, "--no-audit", "--no-fund", "--loglevel=error"];
  // Of a dependency of the Restate server, which would report the installation to its makers.
  const env = { ...process.env, SCARF_ANALYTICS: "false" };
  const cli = process.env["npm_execpath"];
  const options = { cwd: peersDirectory, stdio: ["ignore", 2, 2] as ["ignore", number, number], env };
  const ended =
    cli === undefined
      ? spawnSync("npm", args, options)
      : spawnSync(process.execPath, [cli, ...args], options);
  return ended.status === 0;
}

function typeCheck(): void {
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", peersDirectory], { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error("the programs in bench/peers do not type-check");
}
