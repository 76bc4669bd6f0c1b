/** The entry of the `pawl` command. */

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
// Print everything, then exit: a user's file may have left timers or sockets open.
process.stdout.write("", () => process.exit(session.code));
