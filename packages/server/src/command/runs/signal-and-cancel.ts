/** `pawl runs signal` and `pawl runs cancel`. */

import type { Command } from "commander";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { plural, prettyJson } from "../terminal/text.js";

interface SignalFlags extends ConnectionOptions {
  readonly dedupKey?: string;
  readonly json?: true;
}

interface CancelFlags extends ConnectionOptions {
  readonly reason?: string;
  readonly cascade?: true;
  readonly json?: true;
}

export function addRunsSignal(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "signal",
    description: "send a signal to a run",
    examples: [
      `pawl runs signal 64 paid '{"euros":25}'`,
      "pawl runs signal 64 approved @decision.json --dedup-key click-1",
    ],
  })
    .argument("<run>", "the id of the run")
    .argument("<signal>", "the name of the signal")
    .argument("[payload]", "JSON, @file.json, or - for standard input (default: {})")
    .option("--dedup-key <key>", "a second signal with this key changes nothing")
    .option("--json", "print JSON: { delivered }");
  addConnectionOptions(command).action(
    action(session, async (runId: string, name: string, given: string | undefined, flags: SignalFlags) => {
      const payload = await readJson(given, "payload", session.shell);
      const { dedupKey } = flags;
      const signalled = await withPawl(flags, (pawl) =>
        pawl.signal(runId, name, payload === undefined ? {} : (payload as object), { dedupKey }),
      );
      const text = signalled.delivered
        ? `delivered to run ${runId}`
        : `run ${runId} already has a signal with this dedup key`;
      session.shell.print(flags.json === true ? prettyJson(signalled) : text);
    }),
  );
}

export function addRunsCancel(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "cancel",
    description: "cancel a run, at once and for good",
    examples: ["pawl runs cancel 64", 'pawl runs cancel 64 --cascade --reason "ordered twice"'],
  })
    .argument("<run>", "the id of the run")
    .option("--reason <text>", "recorded with the run")
    .option("--cascade", "also cancel all its descendants")
    .option("--json", "print JSON: { cancelled }, the number of runs");
  addConnectionOptions(command).action(
    action(session, async (runId: string, flags: CancelFlags) => {
      const { reason, cascade } = flags;
      const answer = await withPawl(flags, (pawl) => pawl.runs.cancel(runId, { reason, cascade }));
      const text =
        answer.cancelled === 0
          ? `run ${runId} is already cancelled`
          : `cancelled ${plural(answer.cancelled, "run")}`;
      session.shell.print(flags.json === true ? prettyJson(answer) : text);
    }),
  );
}
