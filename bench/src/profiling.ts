/**
 * `--profile`: gathers the evidence of one run of a bench: CPU profiles of client and worker, and
 * the server's own statistics. Without the option every method just runs the given work.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { recordCpuProfile, topFunctions } from "./cpu-profile.js";
import { profileServer } from "./server-profile.js";
import type { BenchDatabase } from "./server.js";

const shownFunctions = 15;

export class Profiling {
  readonly #directory: string | undefined;
  readonly #prefix: string;
  readonly #lines: string[] = [];

  constructor(directory: string | undefined, prefix: string) {
    this.#directory = directory;
    this.#prefix = prefix;
    if (directory !== undefined) mkdirSync(directory, { recursive: true });
  }

  /** Where another process is to write its profile; undefined: it shall write none. */
  pathFor(part: string): string | undefined {
    return this.#directory && join(this.#directory, `${this.#prefix}-${part}.cpuprofile`);
  }

  /** A profile was written there, by whichever process. */
  add(path: string | undefined): void {
    if (path !== undefined) this.#lines.push(...topFunctions(path, shownFunctions), "");
  }

  /** Does this work and profiles this process meanwhile. */
  async client<T>(part: string, work: () => Promise<T>): Promise<T> {
    const path = this.pathFor(part);
    if (path === undefined) return work();
    const stop = await recordCpuProfile(path);
    const result = await work();
    await stop();
    this.add(path);
    return result;
  }

  /** Does this work and watches the server meanwhile. */
  async server<T>(part: string, database: BenchDatabase, work: () => Promise<T>): Promise<T> {
    if (this.#directory === undefined) return work();
    const { result, lines } = await profileServer(database, work);
    this.#lines.push(`server, ${part}`, ...lines, "");
    return result;
  }

  report(): readonly string[] {
    return this.#lines;
  }
}
