/** What to do after `pawl dev` has started: commands for another terminal. Pure. */

export interface Started {
  /** Where the server listens. */
  readonly url: string;
  /** Whether it serves the definitions of a file. */
  readonly hasFile: boolean;
  /** The names that the worker serves, such as `greet@1`. */
  readonly serves: readonly string[];
  /** Whether the database has no run yet. */
  readonly isEmpty: boolean;
}

export function nextSteps(started: Started): string {
  return `
The dashboard: ${started.url}/

${headOf(started)}
${aligned(callsOf(started))}
Ctrl-C stops everything; the data stay.
`;
}

function headOf({ isEmpty, hasFile }: Started): string {
  if (!isEmpty) return "Next, in another terminal in this directory:";
  return hasFile
    ? "There are no runs yet. Start the first, in another terminal in this directory:"
    : "There are no runs and no definitions yet. Next, in another terminal:";
}

type Call = readonly [command: string, effect: string];

function callsOf({ hasFile, serves, isEmpty }: Started): Call[] {
  const help: Call = ["npx pawl --help", "all commands"];
  if (!hasFile && isEmpty) {
    return [
      ["npx pawl init my-app", "make a project: a definition, a worker, a test"],
      ["npx pawl dev --watch definitions.ts", "instead of this call: serve the definitions of a file"],
      help,
    ];
  }
  const [name = "<name>"] = serves.map((one) => one.slice(0, one.lastIndexOf("@")));
  const start: Call = [`npx pawl runs start ${name} '{}' --wait`, "start a run; its input is any JSON"];
  return [...(hasFile ? [start] : []), ["npx pawl runs list", "see what runs did"], help];
}

function aligned(calls: readonly Call[]): string {
  const width = Math.max(...calls.map(([command]) => command.length));
  return calls.map(([command, effect]) => `  ${command.padEnd(width)}  # ${effect}`).join("\n");
}
