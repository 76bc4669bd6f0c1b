/** `pawl steps`: lists the journal of a workflow run. */

import type { Command } from "commander";
import type { Step } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { table } from "../terminal/table.js";
import { compactJson, describeError, duration, moment, prettyJson, state } from "../terminal/text.js";

export function addSteps(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "steps",
    description: "list the recorded steps of a workflow run, then the pending ones",
    examples: ["pawl steps 64", "pawl steps 64 --json | jq '.steps[].output'"],
  })
    .argument("<run>", "the id of the run")
    .option("--json", "print JSON: { steps }");
  addConnectionOptions(command).action(
    action(session, async (runId: string, flags: ConnectionOptions & { readonly json?: true }) => {
      const steps = await withPawl(flags, (pawl) => pawl.runs.steps(runId));
      session.shell.print(flags.json === true ? prettyJson({ steps }) : showSteps(steps, session.shell));
    }),
  );
}

function showSteps(steps: readonly Step[], shell: Shell): string {
  if (steps.length === 0) return "no steps: the run has recorded none, or is not a workflow";
  return table(
    ["STEP", "KIND", "STATUS", "ATTEMPT", "STARTED", "TOOK", "OUTPUT"],
    steps.map((step) => [
      step.name,
      step.kind,
      state(step.status, shell.colors),
      String(step.attempt + 1),
      moment(step.startedAt, shell),
      step.completedAt === null ? "" : duration(step.completedAt.getTime() - step.startedAt.getTime()),
      outcomeOf(step, shell),
    ]),
    shell,
  );
}

/** The output of a step, or what it waits for. */
function outcomeOf(step: Step, shell: Shell): string {
  const waits = [
    step.childId === null ? "" : `run ${step.childId}`,
    step.dueAt === null ? "" : `until ${moment(step.dueAt, shell)}`,
  ].filter((text) => text !== "");
  if (step.error !== null) return [shell.colors.red(describeError(step.error)), ...waits].join(", ");
  return step.status === "pending" ? waits.join(", ") : compactJson(step.output);
}
