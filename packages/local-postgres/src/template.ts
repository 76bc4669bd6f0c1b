/**
 * An initialised data directory to copy from: initdb takes about a second, a copy less than a
 * tenth. The trusted cache keeps the template with a manifest of its files. An incomplete template
 * (a cleaner of /tmp ran) is rebuilt. Several processes may build it at once: the first one to
 * finish publishes it.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { changeOwner } from "./copy-tree.js";
import { diagnoseOutput } from "./errors.js";
import type { Identity } from "./identity.js";
import { defaults } from "./options.js";
import { runProgram } from "./run-program.js";
import { discard, publish } from "./trusted-cache.js";
import { quoteIdentifier } from "./wire-query.js";

export interface TemplateRequest {
  /** The runnable `native/` directory. */
  binaries: string;
  version: string;
  /**
   * The user that runs initdb. initdb must find its name; it need not be the user of the server.
   */
  identity: Identity | undefined;
  cache: string | undefined;
  runtimeDirectory: string;
}

/** Raised whenever the content of a template changes, so that old templates are not used. */
const revision = 4;

/**
 * Durable, and sized for a laptop. Dynamic shared memory lies in the data directory and goes with
 * it: in /dev/shm a killed server would leave it for good, and containers have too little there.
 * Statement errors reach the client anyway; leaving them out of the log (`log` ranks above `error`)
 * keeps it from growing without bound.
 */
const defaultSettings: Record<string, string> = {
  max_connections: "100",
  shared_buffers: "128MB",
  max_wal_size: "4GB",
  dynamic_shared_memory_type: "mmap",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "log",
  log_checkpoints: "off",
};

export interface Template {
  /** A data directory to copy. */
  data: string;
  /**
   * Made by an earlier start: if a server does not start on its copy, it may be the template's
   * fault.
   */
  isCached: boolean;
}

export async function findOrBuildTemplate(request: TemplateRequest): Promise<Template> {
  const cached = cachedTemplate(request);
  if (cached && existsSync(cached)) {
    if (isComplete(cached)) return { data: join(cached, "data"), isCached: true };
    discard(cached);
  }
  const built = await buildTemplate(request);
  const isPublished = cached !== undefined && publish(built, cached);
  return { data: join(isPublished ? cached : built, "data"), isCached: false };
}

/** For a caller that found the template unusable in spite of its manifest. */
export function discardTemplate(request: TemplateRequest): void {
  const cached = cachedTemplate(request);
  if (cached) discard(cached);
}

function cachedTemplate(request: TemplateRequest): string | undefined {
  return request.cache && join(request.cache, `template-${request.version}-${revision}`);
}

async function buildTemplate(request: TemplateRequest): Promise<string> {
  const { identity } = request;
  const directory = join(request.runtimeDirectory, "template");
  const data = join(directory, "data");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  mkdirSync(data, { mode: 0o700 });
  if (identity) {
    // The server's user must get through to its own directory while initdb runs.
    chmodSync(directory, 0o711);
    chownSync(data, identity.uid, identity.gid);
  }
  const options: Record<string, string> = {
    pgdata: data,
    username: "postgres",
    encoding: "UTF8",
    auth: "trust",
    // The builtin provider gives the same C.UTF-8 on every system, also where the C library has
    // none.
    "locale-provider": "builtin",
    "builtin-locale": "C.UTF-8",
    locale: "C",
  };
  const settings = Object.entries(defaultSettings).map(([name, value]) => `--set=${name}=${value}`);
  const programArguments = [
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...settings,
  ];
  const { exitCode, output } = await runProgram(
    join(request.binaries, "bin", "initdb"),
    programArguments,
    identity,
  );
  if (exitCode !== 0) throw diagnoseOutput("initdb could not make a data directory", output);
  await createDefaultDatabase(request, data);
  // In the cache it belongs to root, so that no other process of that user can change it.
  if (identity) changeOwner(data, { uid: 0, gid: 0 });
  writeFileSync(join(directory, "manifest.json"), JSON.stringify(listFiles(data)));
  return directory;
}

/**
 * Once here instead of at every start: PostgreSQL takes longer to create a database than to start.
 */
async function createDefaultDatabase(request: TemplateRequest, data: string): Promise<void> {
  const { exitCode, output } = await runProgram(
    join(request.binaries, "bin", "postgres"),
    ["--single", "-D", data, "postgres"],
    request.identity,
    `create database ${quoteIdentifier(defaults.database)};\n`,
  );
  // In this mode a refused statement is only logged.
  if (exitCode !== 0 || /^.*(ERROR|FATAL|PANIC): /m.test(output)) {
    throw diagnoseOutput(`the database ${defaults.database} could not be created`, output);
  }
}

/**
 * Every directory (with a trailing slash) and file (with its size) below `root`, relative to it.
 */
function listFiles(root: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (entry.isDirectory()) found[`${name}/`] = 0;
    else found[name] = statSync(path).size;
  }
  return found;
}

function isComplete(template: string): boolean {
  try {
    const manifest = readFileSync(join(template, "manifest.json"), "utf8");
    const expected: unknown = JSON.parse(manifest);
    if (typeof expected !== "object" || expected === null) return false;
    const found = listFiles(join(template, "data"));
    const names = Object.keys(found);
    const entries = new Map<string, unknown>(Object.entries(expected));
    return names.length === entries.size && names.every((name) => entries.get(name) === found[name]);
  } catch {
    return false;
  }
}
