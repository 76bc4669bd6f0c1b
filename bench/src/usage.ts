/**
 * The resources that some work cost the server: WAL bytes by the difference of two log positions,
 * and CPU time of all server processes. CPU time comes from /proc, so only for a local server on
 * Linux; elsewhere it is null, "not measured".
 */

import { readdirSync, readFileSync } from "node:fs";
import type { BenchDatabase } from "./server.js";

export interface Usage {
  readonly walBytes: number;
  readonly cpuMs: number | null;
}

/**
 * Begins to count. The returned function gives the usage since then, without the CPU time of the
 * session `without`, a busy connection of the bench itself.
 */
export async function countUsage(
  database: BenchDatabase,
  { without }: { without?: number } = {},
): Promise<() => Promise<Usage>> {
  const before = await read(database, without);
  return async () => {
    const after = await read(database, without);
    const isKnown = before.cpuMs !== null && after.cpuMs !== null;
    return {
      walBytes: after.walBytes - before.walBytes,
      cpuMs: isKnown ? after.cpuMs - before.cpuMs : null,
    };
  };
}

async function read({ observer, postmasterPid }: BenchDatabase, without: number | undefined): Promise<Usage> {
  const { rows } = await observer.query<{ bytes: number }>(
    "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes",
  );
  return {
    walBytes: rows[0]?.bytes ?? 0,
    cpuMs: postmasterPid === undefined ? null : cpuMsOf(postmasterPid, without),
  };
}

/** USER_HZ, which Linux shows to programs on every architecture that Node.js runs on. */
const ticksPerSecond = 100;

const mostReadings = 100;

/**
 * All server processes are children of the postmaster, whose own row includes the time of ended
 * ones.
 */
function cpuMsOf(postmasterPid: number, without: number | undefined): number | null {
  if (process.platform !== "linux") return null;
  for (let reading = 1; reading <= mostReadings; reading++) {
    const before = readStat(postmasterPid);
    const live = liveTicks(postmasterPid) - (without === undefined ? 0 : (readStat(without)?.own ?? 0));
    const after = readStat(postmasterPid);
    if (before === undefined || after === undefined) return null;
    // A process that ended in between would be counted twice or not at all: look again.
    if (before.ofEndedChildren !== after.ofEndedChildren) continue;
    return ((after.own + after.ofEndedChildren + live) * 1_000) / ticksPerSecond;
  }
  return null;
}

function liveTicks(postmasterPid: number): number {
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat?.parent === postmasterPid) ticks += stat.own;
  }
  return ticks;
}

function readStat(pid: number): { parent: number; own: number; ofEndedChildren: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined; // it has ended
  }
  // The name of the program, in parentheses, may contain anything: count from the last one. See
  // proc(5).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3]);
  return { parent: field(4), own: field(14) + field(15), ofEndedChildren: field(16) + field(17) };
}

/** CPU time of these server processes, to the nanosecond; null where the system does not tell. */
export function exactCpuMs(pids: readonly number[]): number | null {
  let nanoseconds = 0;
  for (const pid of pids) {
    try {
      // The first number: time spent on the CPU. See the kernel's sched-stats; a server process has
      // one thread.
      nanoseconds += Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      return null;
    }
  }
  return nanoseconds / 1e6;
}
