/**
 * TLS as libpq's `sslmode` has it, for URLs and for connection options, and what to say about an error
 * of TLS. The driver's own reading of `sslmode` differs from libpq's, so it never sees that parameter.
 */

import { readFileSync } from "node:fs";
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { InvalidOption } from "../../values/errors.js";
import { show } from "../../values/show.js";
import type { TlsMode } from "./source-types.js";

const tlsModes: readonly TlsMode[] = [
  "disable",
  "allow",
  "prefer",
  "require",
  "verify-ca",
  "verify-full",
  "no-verify",
];

/** The parameters that libpq knows, as they stand in a URL. Files are named by their paths. */
export interface TlsParameters {
  readonly sslmode?: string | undefined;
  readonly sslrootcert?: string | undefined;
  readonly sslcert?: string | undefined;
  readonly sslkey?: string | undefined;
}

const names = ["sslmode", "sslrootcert", "sslcert", "sslkey"] as const;

/** The URL without the parameters of TLS, and these. */
export function takeTls(url: string): { readonly url: string; readonly tls: TlsParameters } {
  const at = url.indexOf("?");
  if (at === -1) return { url, tls: {} };
  const query = new URLSearchParams(url.slice(at + 1));
  const tls = Object.fromEntries(
    names.flatMap((name) => (query.has(name) ? [[name, query.get(name) ?? ""]] : [])),
  );
  // Other parameters stay as they were written.
  const rest = url
    .slice(at + 1)
    .split("&")
    .filter((pair) => !/^(sslmode|sslrootcert|sslcert|sslkey|uselibpqcompat)=/.test(pair));
  return { url: url.slice(0, at) + (rest.length === 0 ? "" : `?${rest.join("&")}`), tls };
}

/**
 * The driver's setting for these parameters; undefined if there is none of them. Without a mode, a
 * given certificate means `verify-full`.
 */
export function tlsOptions(given: TlsParameters): boolean | TlsOptions | undefined {
  const { sslmode, sslrootcert, sslcert, sslkey } = given;
  if (sslmode === undefined && sslrootcert === undefined && sslcert === undefined) return undefined;
  const mode = tlsModes.find((known) => known === (sslmode ?? "verify-full"));
  if (mode === undefined) {
    throw new InvalidOption(`sslmode must be one of ${tlsModes.join(", ")}, not ${show(sslmode)}`);
  }
  // libpq tries without TLS first.
  if (mode === "disable" || mode === "allow") return false;
  const hasOwnRoot = sslrootcert !== undefined && sslrootcert !== "system";
  const files: TlsOptions = {
    ...(hasOwnRoot ? { ca: readText(sslrootcert, "sslrootcert") } : {}),
    ...(sslcert === undefined ? {} : { cert: readText(sslcert, "sslcert") }),
    ...(sslkey === undefined ? {} : { key: readText(sslkey, "sslkey") }),
  };
  if (mode === "verify-full") return files;
  if (mode === "verify-ca" && !hasOwnRoot) {
    throw new InvalidOption(
      "sslmode=verify-ca needs sslrootcert, the file of the CA: any public CA would vouch for anybody. " +
        "Add sslrootcert, or use sslmode=verify-full",
    );
  }
  if (mode === "verify-ca" || (mode === "require" && hasOwnRoot)) {
    return { ...files, checkServerIdentity: () => undefined };
  }
  return { ...files, rejectUnauthorized: false };
}

function readText(file: string, what: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InvalidOption(`${what} names a file that cannot be read (${code}): ${file}`, { cause: error });
  }
}

const untrusted = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_UNTRUSTED",
]);

/** One sentence about an error of TLS, and its cure; null if the error is of another kind. */
export function explainTls(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = "" } = error as NodeJS.ErrnoException;
  if (untrusted.has(code)) {
    return (
      `its TLS certificate is not trusted (${code}). Name the CA of your provider by sslrootcert, or encrypt ` +
      "without checking the certificate by sslmode=require"
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return (
      `its TLS certificate is for another host (${code}). Use the host that the certificate names, or ` +
      "check only its CA by sslmode=verify-ca and sslrootcert"
    );
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return `its TLS certificate is not valid today (${code}). Renew it at the server, or check the clock of this machine`;
  }
  if (/^(ERR_SSL_|ERR_TLS_|EPROTO)/.test(code)) {
    return `the TLS handshake failed (${code}). Check that host and port are those of PostgreSQL, and its TLS settings`;
  }
  if (error.message === "The server does not support SSL connections") {
    return "it does not offer TLS. Switch TLS on at the server, or connect without it by sslmode=disable";
  }
  if (/no pg_hba\.conf entry .*no encryption/.test(error.message)) {
    return "it refuses connections without TLS. Add sslmode=require or sslmode=verify-full to the URL";
  }
  return null;
}
