/**
 * The dashboard: the static files of `@pawl/dashboard`, read once and kept in memory. It serves
 * paths that no route of the API has. The files are open to everybody; all data come from the API,
 * which checks the caller.
 */

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";

interface StaticFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly zipped: Buffer;
}

/** Where and how the dashboard is shown. */
interface Look {
  /** The path before all of its paths; "": none. */
  readonly basePath: string;
  /** Whether it hides every button that changes something. */
  readonly readOnly: boolean;
  /** False: the server leaves payloads out of its answers (`hidden-payloads.ts`). */
  readonly payloads: boolean;
}

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Names of assets carry a hash of their content, so that caches may keep them. */
const assetHeaders = { "cache-control": "public, max-age=31536000, immutable" };

const pageHeaders = {
  "cache-control": "no-cache",
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

const commonHeaders = { "x-content-type-options": "nosniff", vary: "accept-encoding" };

/** Paths of the API and its probes: what is unknown below them is a problem document. */
const apiPath = /^\/(v1|metrics|healthz|readyz)(\/|$)/;

export class Dashboard {
  readonly #assets: ReadonlyMap<string, StaticFile>;
  readonly #page: StaticFile;

  private constructor(page: StaticFile, assets: ReadonlyMap<string, StaticFile>) {
    this.#page = page;
    this.#assets = assets;
  }

  /** Reads the built files; null if they are not there, as in a checkout that is not built. */
  static read(look: Look): Dashboard | null {
    const require = createRequire(import.meta.url);
    const manifest = require.resolve("@pawl/dashboard/package.json");
    const directory = join(dirname(manifest), "dist/app");
    try {
      const names = readdirSync(join(directory, "assets"));
      const assets = names.map(
        (name) => [`/assets/${name}`, readStatic(join(directory, "assets", name))] as const,
      );
      const page = readFileSync(join(directory, "index.html"), "utf8");
      return new Dashboard(toStatic(Buffer.from(fillIn(page, look)), ".html"), new Map(assets));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Answers a request that no route takes, if it asks for a file or a page; else returns false. */
  answer(request: FastifyRequest, reply: FastifyReply): boolean {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    const path = request.url.replace(/\?.*$/s, "");
    const asset = this.#assets.get(path);
    if (asset !== undefined) {
      send(reply.headers(assetHeaders), asset, request);
      return true;
    }
    const wantsPage = path === "/" || /\btext\/html\b/.test(request.headers.accept ?? "");
    if (!wantsPage || apiPath.test(path) || path.startsWith("/assets/")) return false;
    send(reply.headers(pageHeaders), this.#page, request);
    return true;
  }
}

function readStatic(file: string): StaticFile {
  return toStatic(readFileSync(file), extname(file));
}

function toStatic(bytes: Buffer, extension: string): StaticFile {
  const type = types[extension] ?? "application/octet-stream";
  return { type, bytes, zipped: gzipSync(bytes, { level: 9 }) };
}

/**
 * Writes into the page where it is and how it looks. The page reads its address from `<base>`, and
 * the rest from a `<meta>`: no script is inline. `basePath` is safe in HTML (`embed/base-path.ts`).
 */
function fillIn(page: string, { basePath, readOnly, payloads }: Look): string {
  const words = [...(readOnly ? ["read-only"] : []), ...(payloads ? [] : ["hidden-payloads"])];
  return page
    .replace('<base href="/" />', `<base href="${basePath}/" />`)
    .replace('<meta name="pawl" content="" />', `<meta name="pawl" content="${words.join(" ")}" />`);
}

function send(reply: FastifyReply, file: StaticFile, { method, headers }: FastifyRequest): void {
  const isZipped = /\bgzip\b/.test(headers["accept-encoding"] ?? "");
  const bytes = isZipped ? file.zipped : file.bytes;
  void reply.headers(commonHeaders).type(file.type).header("content-length", bytes.length);
  if (isZipped) void reply.header("content-encoding", "gzip");
  void reply.send(method === "HEAD" ? undefined : bytes);
}
