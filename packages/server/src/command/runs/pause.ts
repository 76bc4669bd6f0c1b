/**
 * `pawl runs pause` and `pawl runs resume`, and what they share with the commands that pause queues
 * and definitions.
 */

import type { Command } from "commander";
import type { PauseOptions } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { prettyJson } from "../terminal/text.js";

export type Flags = ConnectionOptions & { readonly json?: true };
export type PauseFlags = Flags & PauseOptions;

export function addRunsPause(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "pause",
    description: "pause a run: it finishes its present step and then stays",
    examples: ["pawl runs pause 64", 'pawl runs pause 64 --reason "wrong address"'],
  }).argument("<run>", "the id of the run");
  addPauseOptions(command).action(
    action(session, async (runId: string, flags: PauseFlags) => {
      const answer = await withPawl(flags, (pawl) => pawl.runs.pause(runId, optionsOf(flags)));
      print(session.shell, flags, answer, `run ${runId} is ${answer.changed ? "" : "already "}paused`);
    }),
  );
}

export function addRunsResume(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "resume",
    description: "resume a paused run where it stopped",
    examples: ["pawl runs resume 64"],
  }).argument("<run>", "the id of the run");
  addResumeOptions(command).action(
    action(session, async (runId: string, flags: Flags) => {
      const answer = await withPawl(flags, (pawl) => pawl.runs.resume(runId));
      print(session.shell, flags, answer, resumedText(`run ${runId}`, answer.changed));
    }),
  );
}

export function addPauseOptions(command: Command): Command {
  return addConnectionOptions(
    command
      .option("--reason <text>", "why, for the people who ask")
      .option("--by <who>", "who pauses it (default: the name of your token, or you and this machine)")
      .option("--json", "print JSON: { changed }"),
  );
}

export function addResumeOptions(command: Command): Command {
  return addConnectionOptions(command.option("--json", "print JSON: { changed }"));
}

export function optionsOf({ reason, by }: PauseFlags): PauseOptions {
  return { reason, by };
}

export function resumedText(what: string, changed: boolean): string {
  return changed ? `${what} is resumed` : `${what} is not paused: nothing to do`;
}

export function print(shell: Shell, { json }: Flags, answer: object, text: string): void {
  shell.print(json === true ? prettyJson(answer) : text);
}
