/** `pawl runs show` and `pawl runs why`: one run, and why it does not continue. */

import type { Command } from "commander";
import type { Run, Why } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import type { Shell } from "../terminal/shell.js";
import { properties } from "../terminal/table.js";
import { duration, errorBlock, moment, prettyJson, printable, showTags, state } from "../terminal/text.js";

type Flags = ConnectionOptions & { readonly json?: true };

export function addRunsShow(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "show",
    description: "show a run: its status, input, state, output and error",
    examples: ["pawl runs show 64", "pawl runs show 64 --json | jq .output"],
  })
    .argument("<run>", "the id of the run")
    .option("--json", "print JSON: the run");
  addConnectionOptions(command).action(
    action(session, async (runId: string, flags: Flags) => {
      const { shell } = session;
      await withPawl(flags, async (pawl) => {
        const run = await pawl.runs.get(runId);
        if (flags.json === true) return shell.print(prettyJson(run));
        const why = run.status === "running" ? await pawl.why(runId) : null;
        shell.print(showRun(run, why, shell));
      });
    }),
  );
}

export function addRunsWhy(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "why",
    description: "say why a run does not continue",
    examples: ["pawl runs why 64", "pawl runs why 64 --json | jq .reason"],
  })
    .argument("<run>", "the id of the run")
    .option("--json", "print JSON: the reason and its details");
  addConnectionOptions(command).action(
    action(session, async (runId: string, flags: Flags) => {
      const why = await withPawl(flags, (pawl) => pawl.why(runId));
      session.shell.print(flags.json === true ? prettyJson(why) : printable(why.text));
    }),
  );
}

function showRun(run: Run, why: Why | null, shell: Shell): string {
  const { colors } = shell;
  const took = run.completedAt === null ? "" : duration(run.completedAt.getTime() - run.startedAt.getTime());
  const time = (date: Date | null): string =>
    date === null
      ? ""
      : shell.isTerminal
        ? `${date.toISOString()} (${moment(date, shell)})`
        : date.toISOString();
  const value = (json: unknown): string => (json === null ? "" : prettyJson(json));
  return properties(
    [
      ["run", colors.bold(run.runId)],
      ["definition", `${run.name}@${run.version}${run.kind === null ? "" : ` (${run.kind})`}`],
      ["status", state(run.status, colors) + (run.status === "running" ? ` (${run.phase})` : "")],
      ["why", why === null ? "" : printable(why.text)],
      ["step", run.step ?? ""],
      ["attempt", run.attempt === 0 ? "" : String(run.attempt + 1)],
      ["queue", run.queue],
      ["priority", run.priority === 0 ? "" : String(run.priority)],
      ["parent", run.parentId ?? ""],
      ["rerun of", run.rerunOf ?? ""],
      ["rerun as", run.rerunAs ?? ""],
      ["idempotency key", printable(run.idempotencyKey ?? "")],
      ["correlation key", printable(run.correlationKey ?? "")],
      ["tags", printable(showTags(run.tags))],
      ["started", time(run.startedAt)],
      ["deadline", run.status === "running" ? time(run.deadlineAt) : ""],
      ["due", run.status === "running" ? time(run.eligibleAt) : ""],
      ["completed", time(run.completedAt)],
      ["took", took],
      ["kept until", time(run.expiresAt)],
      ["input", prettyJson(run.input)],
      ["state", value(run.state)],
      ["output", value(run.output)],
      ["error", colors.red(errorBlock(run.error))],
    ],
    shell,
  );
}
