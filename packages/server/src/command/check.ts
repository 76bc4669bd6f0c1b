/** `pawl check`: would the open runs continue with the code of a file? For deployment pipelines. */

import type { Command } from "commander";
import type { BrokenRun, Checked } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { exitCode } from "./terminal/failure.js";
import { action, addCommand, type Session } from "./terminal/session.js";
import type { Shell } from "./terminal/shell.js";
import { table } from "./terminal/table.js";
import { plural, prettyJson, printable } from "./terminal/text.js";

export function addCheck(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "check",
    description: "list open runs that would break with the definitions of a file; ends with 1 if any would",
    examples: ["pawl check src/definitions.ts", "pawl check dist/definitions.js --json"],
  })
    .argument("<file>", "a TypeScript or JavaScript file that exports the definitions")
    .option("--json", "print JSON: { runs, broken }");
  addConnectionOptions(command).action(
    action(session, async (file: string, flags: ConnectionOptions & { readonly json?: true }) => {
      // Imported here, because the TypeScript loader takes longer to load than everything else.
      const { loadDefinitions } = await import("./dev/load-definitions.js");
      const { definitions, pawl: library } = await loadDefinitions(file);
      const checked = await withPawl(flags, (pawl) => pawl.check(definitions), library.connect);
      session.shell.print(flags.json === true ? prettyJson(checked) : describe(checked, session.shell));
      return checked.broken.length === 0 ? exitCode.ok : exitCode.no;
    }),
  );
}

function describe({ runs, broken }: Checked, shell: Shell): string {
  const open = plural(runs, "open run");
  if (broken.length === 0) return `${open}: all would continue`;
  const rows = broken.map((run: BrokenRun) => [
    run.runId,
    `${run.name}@${run.version}`,
    shell.colors.red(run.reason),
    printable(run.text),
  ]);
  return `${table(["RUN", "NAME", "REASON", "BECAUSE"], rows, shell)}\n${open}: ${broken.length} would break`;
}
