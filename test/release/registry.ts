/**
 * An npm registry on the loopback interface. It serves the packed packages of this workspace, and every
 * other package as it is installed in this checkout. So npm installs for real, without a network.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { basename, dirname, join } from "node:path";
import { root } from "../docs/pages.js";

interface Manifest {
  readonly name: string;
  readonly version: string;
}

/** A version of a package: its manifest, and its tarball or the folder that it is installed in. */
interface Entry {
  readonly manifest: Manifest;
  readonly source: { readonly tarball: string } | { readonly folder: string } | null;
}

export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

/** `tarballs`: the packed packages, with their manifests. */
export async function openRegistry(
  tarballs: readonly { tarball: string; manifest: Manifest }[],
): Promise<Registry> {
  const entries: Entry[] = [
    ...tarballs.map(({ tarball, manifest }) => ({ manifest, source: { tarball } })),
    ...installedEntries(),
  ];
  const server = createServer((request, response) => answer(request, response, entries));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * The packages of the lockfile. One that is not installed here (a binary for another platform) has only
 * what the lockfile says; npm does not fetch it.
 */
function installedEntries(): Entry[] {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; link?: true }>;
  };
  return Object.entries(lock.packages).flatMap(([path, locked]): Entry[] => {
    const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    if (name === undefined || locked.version === undefined || locked.link === true) return [];
    const folder = join(root, path);
    const file = join(folder, "package.json");
    return existsSync(file)
      ? [{ manifest: JSON.parse(readFileSync(file, "utf8")) as Manifest, source: { folder } }]
      : [{ manifest: { ...locked, name, version: locked.version }, source: null }];
  });
}

/** `/name` is the document of a package, `/name/-/version.tgz` a tarball. */
function answer(request: IncomingMessage, response: ServerResponse, entries: readonly Entry[]): void {
  const { host = "" } = request.headers;
  const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname).slice(1);
  const [name = "", file] = path.split("/-/");
  const found = entries.filter(({ manifest }) => manifest.name === name);
  if (file !== undefined) {
    const entry = found.find(({ manifest }) => `${manifest.version}.tgz` === file);
    return entry?.source == null ? refuse(response) : send(response, entry.source);
  }
  if (found.length === 0) return refuse(response);
  const versions = Object.fromEntries(
    found.map(({ manifest }) => {
      const tarball = `http://${host}/${name}/-/${manifest.version}.tgz`;
      return [manifest.version, { ...manifest, dist: { tarball } }];
    }),
  );
  const latest = found[0]?.manifest.version;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ name, "dist-tags": { latest }, versions }));
}

function refuse(response: ServerResponse): void {
  response.statusCode = 404;
  response.end(JSON.stringify({ error: "not in this checkout" }));
}

function send(response: ServerResponse, source: NonNullable<Entry["source"]>): void {
  response.setHeader("content-type", "application/octet-stream");
  if ("tarball" in source) return void createReadStream(source.tarball).pipe(response);
  const { folder } = source;
  const own = basename(folder);
  // npm skips links in a tarball, and files of a checkout may be hard links to each other.
  const options = ["--hard-dereference", `--exclude=${own}/node_modules`];
  const tar = spawn("tar", ["-c", ...options, "-C", dirname(folder), own], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  tar.stdout.pipe(response);
}
