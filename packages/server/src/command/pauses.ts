/**
 * `pawl queues` and `pawl definitions`: pause and resume queues and definitions, and list the paused
 * ones.
 */

import type { Command } from "commander";
import type { PausedDefinition, PausedQueue } from "pawl";
import {
  addPauseOptions,
  addResumeOptions,
  type Flags,
  optionsOf,
  type PauseFlags,
  print,
  resumedText,
} from "./runs/pause.js";
import { addConnectionOptions, withPawl } from "./terminal/connection.js";
import { integer } from "./terminal/input.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import { table } from "./terminal/table.js";
import { moment, prettyJson, printable } from "./terminal/text.js";

interface Versioned {
  readonly version?: number;
}

export function addPauses(program: Command, session: Session): void {
  const queues = addGroup(program, session, {
    name: "queues",
    description: "pause and resume queues, and list the paused ones",
    examples: ['pawl queues pause mail --reason "provider is down"', "pawl queues resume mail"],
  });
  addQueuePause(queues, session);
  addQueueResume(queues, session);
  addPaused(queues, session, "queues");
  const definitions = addGroup(program, session, {
    name: "definitions",
    description: "pause and resume definitions, and list the paused ones",
    examples: ["pawl definitions pause charge", "pawl definitions pause charge --version 2"],
  });
  addDefinitionPause(definitions, session);
  addDefinitionResume(definitions, session);
  addPaused(definitions, session, "definitions");
}

function addQueuePause(queues: Command, session: Session): void {
  const command = addCommand(queues, session, {
    name: "pause",
    description: "pause a queue: running steps finish, and no worker begins another",
    examples: ["pawl queues pause mail", 'pawl queues pause mail --reason "provider is down"'],
  }).argument("<queue>", "the name of the queue");
  addPauseOptions(command).action(
    action(session, async (queue: string, flags: PauseFlags) => {
      const answer = await withPawl(flags, (pawl) => pawl.queues.pause(queue, optionsOf(flags)));
      print(session.shell, flags, answer, `queue ${queue} is ${answer.changed ? "" : "already "}paused`);
    }),
  );
}

function addQueueResume(queues: Command, session: Session): void {
  const command = addCommand(queues, session, {
    name: "resume",
    description: "resume a paused queue",
    examples: ["pawl queues resume mail"],
  }).argument("<queue>", "the name of the queue");
  addResumeOptions(command).action(
    action(session, async (queue: string, flags: Flags) => {
      const answer = await withPawl(flags, (pawl) => pawl.queues.resume(queue));
      print(session.shell, flags, answer, resumedText(`queue ${queue}`, answer.changed));
    }),
  );
}

function addDefinitionPause(definitions: Command, session: Session): void {
  const command = addCommand(definitions, session, {
    name: "pause",
    description: "pause a definition: running steps finish, and no worker begins another",
    examples: ["pawl definitions pause charge", "pawl definitions pause charge --version 2"],
  })
    .argument("<name>", "the name of the definition")
    .option("--version <number>", "only this version (default: all)", integer);
  addPauseOptions(command).action(
    action(session, async (name: string, flags: PauseFlags & Versioned) => {
      const { version } = flags;
      const options = { ...optionsOf(flags), version };
      const answer = await withPawl(flags, (pawl) => pawl.definitions.pause(name, options));
      const text = `definition ${nameOf(name, version)} is ${answer.changed ? "" : "already "}paused`;
      print(session.shell, flags, answer, text);
    }),
  );
}

function addDefinitionResume(definitions: Command, session: Session): void {
  const command = addCommand(definitions, session, {
    name: "resume",
    description: "resume a paused definition",
    examples: ["pawl definitions resume charge", "pawl definitions resume charge --version 2"],
  })
    .argument("<name>", "the name of the definition")
    .option("--version <number>", "only the pause of this version (default: all its pauses)", integer);
  addResumeOptions(command).action(
    action(session, async (name: string, flags: Flags & Versioned) => {
      const { version } = flags;
      const answer = await withPawl(flags, (pawl) => pawl.definitions.resume(name, { version }));
      const still = answer.still ? `; all versions of ${name} are still paused` : "";
      const text = resumedText(`definition ${nameOf(name, version)}`, answer.changed) + still;
      print(session.shell, flags, answer, text);
    }),
  );
}

function addPaused(parent: Command, session: Session, what: "queues" | "definitions"): void {
  const command = addCommand(parent, session, {
    name: "paused",
    description: `list the paused ${what}, with who paused them and why`,
    examples: [`pawl ${what} paused`, `pawl ${what} paused --json`],
  }).option("--json", "print JSON: { paused }");
  addConnectionOptions(command).action(
    action(session, async (flags: Flags) => {
      const { shell } = session;
      const paused: readonly (PausedQueue | PausedDefinition)[] = await withPawl(flags, (pawl) =>
        pawl[what].paused(),
      );
      if (flags.json === true) return shell.print(prettyJson({ paused }));
      if (paused.length === 0) return shell.print(`no paused ${what}`);
      const rows = paused.map((one) => [
        nameOf(one.name, "version" in one ? (one.version ?? undefined) : undefined),
        printable(one.by),
        moment(one.since, shell),
        printable(one.reason ?? ""),
      ]);
      shell.print(table(["NAME", "BY", "SINCE", "REASON"], rows, shell));
    }),
  );
}

const nameOf = (name: string, version: number | undefined): string =>
  version === undefined ? name : `${name}@${version}`;
