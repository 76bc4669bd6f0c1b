/** `pawl completion`: prints the script that completes commands and options in a shell. */

import { Argument, type Command } from "commander";
import { action, addCommand, type Session } from "../terminal/session.js";
import { completionScript, type ShellName, shells } from "./scripts.js";
import { commandTable } from "./table.js";

export function addCompletion(program: Command, session: Session): void {
  addCommand(program, session, {
    name: "completion",
    description: "print a script that completes commands and options in your shell",
    examples: [
      "source <(pawl completion bash)",
      "pawl completion zsh > ~/.zfunc/_pawl",
      "pawl completion fish > ~/.config/fish/completions/pawl.fish",
    ],
  })
    .addArgument(new Argument("<shell>", "your shell").choices(shells))
    .action(
      action(session, async (shell: ShellName) => {
        session.shell.print(completionScript(shell, commandTable(program)).trimEnd());
      }),
    );
}
