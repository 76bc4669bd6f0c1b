/** `pawl runs tail`: follows a run until it ends, or all new runs. */

import type { Command } from "commander";
import type { Run, Step } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { type ExitCode, exitCode, UsageError } from "../terminal/failure.js";
import { follow, followAll, type RunEvent } from "./follow.js";
import { type FilterFlags, filterOf, addFilterOptions } from "./filter.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { compactJson, describeError, duration, state } from "../terminal/text.js";

type Flags = ConnectionOptions & FilterFlags & { readonly json?: true };

export function addRunsTail(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "tail",
    description: "follow a run until it ends, or all new runs; ends with 1 if the run does not complete",
    examples: ["pawl runs tail 64", "pawl runs tail --name signup", "pawl runs tail --json | jq .run.status"],
  })
    .argument("[run]", "the id of the run (default: all that begin from now on)")
    .option("--json", "print a JSON object per line: { event, run } or { event, runId, step }");
  addConnectionOptions(addFilterOptions(command)).action(
    action(session, async (runId: string | undefined, flags: Flags) => {
      const filter = await filterOf(flags, session.shell);
      if (runId !== undefined && Object.values(filter).some((value) => value !== undefined)) {
        throw new UsageError(
          "options such as --name and --status filter all runs: leave out the id, or the filters",
        );
      }
      return withPawl(flags, (pawl) =>
        tail(runId === undefined ? followAll(pawl, filter) : follow(pawl, runId), flags, session),
      );
    }),
  );
}

async function tail(events: AsyncIterable<RunEvent>, flags: Flags, { shell }: Session): Promise<ExitCode> {
  let last: RunEvent | undefined;
  for await (const event of events) {
    last = event;
    shell.print(flags.json === true ? JSON.stringify(event) : showEvent(event, shell));
  }
  return last?.event === "run" && last.run.status === "completed" ? exitCode.ok : exitCode.no;
}

function showEvent(event: RunEvent, shell: Shell): string {
  const [at, runId, text] =
    event.event === "run"
      ? [event.run.completedAt ?? new Date(), event.run.runId, describeRun(event.run, shell)]
      : [event.step.completedAt ?? event.step.startedAt, event.runId, describeStep(event.step, shell)];
  const time = shell.isTerminal ? at.toTimeString().slice(0, 8) : at.toISOString();
  return `${shell.colors.dim(time)}  ${runId}  ${text}`;
}

function describeRun(run: Run, { colors }: Shell): string {
  const name = `${run.name}@${run.version}`;
  const word = run.status === "running" ? run.phase : run.status;
  const where = run.status === "running" && run.step !== null ? ` at step "${run.step}"` : "";
  const attempt = run.attempt > 0 ? `, attempt ${run.attempt + 1}` : "";
  const took =
    run.completedAt === null ? "" : ` after ${duration(run.completedAt.getTime() - run.startedAt.getTime())}`;
  const end =
    run.error !== null && run.status !== "completed"
      ? `: ${colors.red(describeError(run.error))}`
      : run.status === "completed"
        ? `: ${compactJson(run.output)}`
        : "";
  return `${name} ${state(word, colors)}${where}${attempt}${took}${end}`;
}

function describeStep(step: Step, shell: Shell): string {
  const took =
    step.completedAt === null
      ? ""
      : ` after ${duration(step.completedAt.getTime() - step.startedAt.getTime())}`;
  const until = step.dueAt === null ? "" : `, until ${step.dueAt.toISOString()}`;
  const attempt = step.attempt > 0 ? `, attempt ${step.attempt + 1}` : "";
  const error = step.error === null ? "" : `: ${shell.colors.red(describeError(step.error))}`;
  return `step "${step.name}" (${step.kind}) ${state(step.status, shell.colors)}${attempt}${took}${until}${error}`;
}
