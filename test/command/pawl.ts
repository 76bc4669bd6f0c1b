/** The command as users call it: a process of its own, with its output, its exit code and nothing from our environment. */

import { join } from "node:path";
import { type Ended, type Program, startProgram } from "../docs/program.js";
import { root } from "../docs/pages.js";

const bin = join(root, "packages/server/bin/pawl.js");

export interface CallOptions {
  readonly url?: string;
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: Record<string, string>;
}

/** Starts `pawl …args`. */
export function startPawl(
  args: readonly string[],
  { url, cwd, input = "", env = {} }: CallOptions = {},
): Program {
  const program = startProgram(bin, {
    args,
    ...(cwd === undefined ? {} : { cwd }),
    env: { NO_COLOR: "", FORCE_COLOR: "", ...(url === undefined ? {} : { DATABASE_URL: url }), ...env },
  });
  program.process.stdin?.on("error", () => {}).end(input);
  return program;
}

/** Runs it to its end. */
export function pawl(args: readonly string[], options: CallOptions = {}): Promise<Ended> {
  return startPawl(args, options).ended;
}

/** Runs it with `--json` and reads what it prints. */
export async function pawlJson<T>(args: readonly string[], options: CallOptions = {}): Promise<T> {
  const { stdout, stderr } = await pawl([...args, "--json"], options);
  try {
    return JSON.parse(stdout) as T;
  } catch (error) {
    throw new Error(`pawl ${args.join(" ")} printed no JSON: ${stdout}${stderr}`, { cause: error });
  }
}
