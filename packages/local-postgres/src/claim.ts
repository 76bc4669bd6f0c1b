/**
 * Decides which supervisor serves a persistent directory, and tells users where to find it. Records
 * are numbered files in the directory, each naming a control socket. The highest number counts. A
 * record whose socket does not answer is dead, since the kernel closes the socket with its process.
 * A process supersedes it by creating the next number, which only one process can do. The highest
 * record is never deleted: a slow process that saw it must find the next number taken. So two
 * supervisors never hold the directory at once.
 */
import { randomBytes } from "node:crypto";
import { linkSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LocalPostgresError, systemCodeOf } from "./errors.js";
import { isTrustedSocket, readTrusted, trustedOwners } from "./trust.js";

const recordPattern = /^pawl-server\.(\d+)\.json(\..+)?$/;

export interface ServerRecord {
  generation: number;
  /**
   * Undefined when there is no record, or none that can be read, or its socket is not (or no
   * longer) the supervisor's.
   */
  controlSocket: string | undefined;
}

export function isServerRecord(fileName: string): boolean {
  return recordPattern.test(fileName);
}

/** Throws if another user wrote the record: it would lead to that user's server. */
export function latestRecord(directory: string): ServerRecord {
  const generation = Math.max(0, ...generationsIn(directory));
  if (generation === 0) return { generation, controlSocket: undefined };
  try {
    const owners = trustedOwners(directory);
    const parsed: unknown = JSON.parse(readTrusted(recordPath(directory, generation), owners));
    const isRecord = typeof parsed === "object" && parsed !== null && "controlSocket" in parsed;
    const controlSocket =
      isRecord && typeof parsed.controlSocket === "string" ? parsed.controlSocket : undefined;
    const isAnswering = controlSocket !== undefined && isTrustedSocket(controlSocket, owners);
    return { generation, controlSocket: isAnswering ? controlSocket : undefined };
  } catch (error) {
    if (error instanceof LocalPostgresError) throw error;
    if (systemCodeOf(error) === "ENOENT") return latestRecord(directory); // superseded while we were reading
    return { generation, controlSocket: undefined };
  }
}

/**
 * True: the directory is ours. False: another supervisor was first, and the caller must look again.
 */
export function claim(directory: string, generation: number, controlSocket: string): boolean {
  const record = recordPath(directory, generation);
  const draft = `${record}.${randomBytes(8).toString("hex")}`;
  writeFileSync(draft, JSON.stringify({ controlSocket }), { flag: "wx", mode: 0o600 });
  try {
    linkSync(draft, record); // fails when it exists, and shows the whole content or nothing
  } catch (error) {
    if (systemCodeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  for (const older of generationsIn(directory)) {
    if (older < generation) rmSync(recordPath(directory, older), { force: true });
  }
  return true;
}

function generationsIn(directory: string): number[] {
  return readdirSync(directory).flatMap((name) => {
    const match = recordPattern.exec(name);
    return match && match[2] === undefined ? [Number(match[1])] : [];
  });
}

function recordPath(directory: string, generation: number): string {
  return join(directory, `pawl-server.${generation}.json`);
}
