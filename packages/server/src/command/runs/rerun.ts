/** `pawl runs rerun`: runs a failed, cancelled or completed run again, as a new run. */

import type { Command } from "commander";
import type { RerunOptions } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { integer, readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { prettyJson } from "../terminal/text.js";

interface RerunFlags extends ConnectionOptions {
  readonly from?: string;
  readonly input?: string;
  readonly state?: string;
  readonly toVersion?: number;
  readonly idempotencyKey?: string;
  readonly json?: true;
}

async function readFlags(
  { from, input, state, toVersion, idempotencyKey }: RerunFlags,
  { shell }: Session,
): Promise<RerunOptions> {
  const given = await readJson(input, "--input", shell);
  const edited = await readJson(state, "--state", shell);
  return {
    ...(from === undefined ? {} : { from }),
    ...(given === undefined ? {} : { input: given }),
    ...(edited === undefined ? {} : { state: edited }),
    ...(toVersion === undefined ? {} : { version: toVersion }),
    idempotencyKey,
  };
}

export function addRunsRerun(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "rerun",
    description: "run an ended run again, from the step that failed",
    examples: [
      "pawl runs rerun 64",
      "pawl runs rerun 64 --from charge-card",
      `pawl runs rerun 64 --from start --input '{"order":42}'`,
    ],
  })
    .argument("<run>", "the id of the run")
    .option("--from <step>", 'the step to begin with, or "start" (default: where the run failed)')
    .option("--input <json>", "another input: JSON, @file.json, or - for standard input")
    .option("--state <json>", "another state of a machine: JSON, @file.json, or -")
    .option("--to-version <number>", "another version of the definition", integer)
    .option("--idempotency-key <key>", "the same key never reruns it twice")
    .option("--json", "print JSON: { runId, created }, the new run");
  addConnectionOptions(command).action(
    action(session, async (runId: string, flags: RerunFlags) => {
      const options = await readFlags(flags, session);
      const rerun = await withPawl(flags, (pawl) => pawl.runs.rerun(runId, options));
      const text = `run ${runId} runs again as run ${rerun.runId}${rerun.created ? "" : ", since an earlier call with this key"}`;
      session.shell.print(flags.json === true ? prettyJson(rerun) : text);
    }),
  );
}
