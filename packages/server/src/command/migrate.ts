/** `pawl migrate`: migrates the schema to a version, or deletes it. */

import { type Command } from "commander";
import { migrate, type MigrationResult } from "pawl";
import { findSchema, findUrl, addDatabaseOptions } from "./terminal/connection.js";
import { UsageError } from "./terminal/failure.js";
import { integer } from "./terminal/input.js";
import { action, addCommand, type Session } from "./terminal/session.js";
import { prettyJson } from "./terminal/text.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly to?: number;
  readonly down?: true;
  readonly yes?: true;
  readonly dryRun?: true;
  readonly grant?: string;
  readonly json?: true;
}

export function addMigrate(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "migrate",
    description: "bring the schema of the database to the version of this release",
    examples: [
      "pawl migrate --dry-run",
      "pawl migrate --url postgres://app@db:5432/app",
      "pawl migrate --grant app",
      "pawl migrate --down --yes",
    ],
  })
    .option("--dry-run", "only print what it would do")
    .option("--to <version>", "the version to migrate to", integer)
    .option("--grant <role>", "let this role use the schema without owning it")
    .option("--down", "migrate down to --to, or delete the whole schema, with every run")
    .option("--yes", "with --down: confirm the deletion")
    .option("--json", "print JSON: { schema, from, to, steps }");
  addDatabaseOptions(command).action(
    action(session, async (flags: Flags) => {
      const { to, dryRun, down, yes, grant } = flags;
      const schema = findSchema(flags.schema);
      if (down === true && dryRun !== true && yes !== true) {
        throw new UsageError(
          `--down deletes the schema "${schema ?? "pawl"}" with every run in it: add --yes to confirm, or see first with --dry-run`,
        );
      }
      if (down === true && grant !== undefined) throw new UsageError("--down and --grant exclude each other");
      const options = { url: findUrl(flags.url), schema, to, dryRun };
      const result = await (down === true ? migrate.down(options) : migrate({ ...options, grant }));
      session.shell.print(flags.json === true ? prettyJson(result) : describe(result, dryRun === true));
    }),
  );
}

function describe({ schema, from, to, steps }: MigrationResult, isDry: boolean): string {
  if (steps.length === 0) return `schema "${schema}" is at version ${from}: nothing to do`;
  if (isDry) return steps.join("\n");
  const moved = from === to ? [] : [`schema "${schema}": version ${from} → ${to}`];
  return [...moved, ...steps.filter((step) => step.startsWith("granted"))].join("\n");
}
