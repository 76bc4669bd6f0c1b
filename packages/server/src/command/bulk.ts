/** `pawl bulk`: lists, shows and stops bulk operations. `pawl runs bulk` starts them. */

import type { Command } from "commander";
import type { BulkOperation, BulkResult } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import type { Shell } from "./terminal/shell.js";
import { table } from "./terminal/table.js";
import { compactJson, moment, prettyJson, printable, state } from "./terminal/text.js";

type Flags = ConnectionOptions & { readonly json?: true };

export function addBulk(program: Command, session: Session): void {
  const bulk = addGroup(program, session, {
    name: "bulk",
    description: "list, show and stop bulk operations",
    examples: ["pawl bulk list", "pawl bulk show 7", "pawl bulk stop 7"],
  });
  addList(bulk, session);
  addShow(bulk, session);
  addStop(bulk, session);
}

function addList(bulk: Command, session: Session): void {
  const command = addCommand(bulk, session, {
    name: "list",
    description: "list the newest bulk operations",
    examples: ["pawl bulk list", "pawl bulk list --json"],
  }).option("--json", "print JSON: { operations, cursor }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const page = await withPawl(flags, (pawl) => pawl.bulk.list());
      const { shell } = session;
      if (flags.json === true) return shell.print(prettyJson(page));
      if (page.operations.length === 0) return shell.print("no bulk operations");
      shell.print(tableOf(page.operations, shell));
    }),
  );
}

function addShow(bulk: Command, session: Session): void {
  const command = addCommand(bulk, session, {
    name: "show",
    description: "show the progress of a bulk operation, and the runs that it skipped or that failed",
    examples: ["pawl bulk show 7", "pawl bulk show 7 --json"],
  })
    .argument("<operation>", "the id of the operation")
    .option("--json", "print JSON: { operation, results }, with the first 100 results");
  addConnectionOptions(command).action(
    action(session, async (id: string, flags: Flags) => {
      const { operation, results } = await withPawl(flags, async (pawl) => ({
        operation: await pawl.bulk.get(id),
        results: (await pawl.bulk.results(id)).results,
      }));
      const { shell } = session;
      if (flags.json === true) return shell.print(prettyJson({ operation, results }));
      const notable = results.filter(({ outcome }) => outcome !== "done");
      const lines = notable.slice(0, 20).map(describe);
      shell.print([tableOf([operation], shell), ...lines].join("\n"));
    }),
  );
}

function addStop(bulk: Command, session: Session): void {
  const command = addCommand(bulk, session, {
    name: "stop",
    description: "stop a bulk operation; runs that it has not reached stay as they are",
    examples: ["pawl bulk stop 7"],
  })
    .argument("<operation>", "the id of the operation")
    .option("--json", "print JSON: the operation");
  addConnectionOptions(command).action(
    action(session, async (id: string, flags: Flags) => {
      const operation = await withPawl(flags, (pawl) => pawl.bulk.stop(id));
      session.shell.print(
        flags.json === true ? prettyJson(operation) : `operation ${id} is ${operation.status}`,
      );
    }),
  );
}

function tableOf(operations: readonly BulkOperation[], shell: Shell): string {
  const rows = operations.map((operation) => [
    operation.id,
    operation.action,
    state(operation.status, shell.colors),
    `${operation.done + operation.skipped + operation.failed} of ${operation.counted}`,
    String(operation.done),
    String(operation.skipped),
    String(operation.failed),
    printable(operation.who),
    moment(operation.startedAt, shell),
    operation.error === null ? compactJson(operation.where) : printable(operation.error),
  ]);
  return table(
    ["OPERATION", "ACTION", "STATUS", "PROGRESS", "DONE", "SKIPPED", "FAILED", "WHO", "STARTED", "WHERE"],
    rows,
    shell,
  );
}

function describe({ runId, outcome, reason }: BulkResult): string {
  return `run ${runId}: ${outcome}${reason === null ? "" : ` (${printable(reason)})`}`;
}
