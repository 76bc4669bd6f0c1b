/** The `pawl` command: one call of it. */

import { exitCode, explainFailure } from "./terminal/failure.js";
import { createProgram } from "./program.js";
import type { Session } from "./terminal/session.js";
import { openShell } from "./terminal/shell.js";

const session: Session = { shell: openShell(process), code: exitCode.ok };
try {
  await createProgram(session).parseAsync();
} catch (error) {
  session.code = explainFailure(error, session.shell, process.argv.includes("--debug"));
}
// What a file of the user's has left open must not keep the command from ending; what was printed must get out first.
process.stdout.write("", () => process.exit(session.code));
