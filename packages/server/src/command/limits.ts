/** `pawl limits`: lists and sets rate limits. */

import type { Command } from "commander";
import type { Duration } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { decimal } from "./terminal/input.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import { table } from "./terminal/table.js";
import { duration, prettyJson } from "./terminal/text.js";

interface SetFlags extends ConnectionOptions {
  readonly allowed: number;
  readonly period: Duration;
  readonly burst?: number;
  readonly json?: true;
}

export function addLimits(program: Command, session: Session): void {
  const limits = addGroup(program, session, {
    name: "limits",
    description: "list and set rate limits",
    examples: ["pawl limits list", "pawl limits set stripe --allowed 100 --period 1s"],
  });
  addList(limits, session);
  addSet(limits, session);
}

function addList(limits: Command, session: Session): void {
  const command = addCommand(limits, session, {
    name: "list",
    description: "list the rate limits",
    examples: ["pawl limits list", "pawl limits list --json"],
  }).option("--json", "print JSON: { limits }");
  addConnectionOptions(command).action(
    action(session, async (flags: ConnectionOptions & { readonly json?: true }) => {
      const { shell } = session;
      const all = await withPawl(flags, (pawl) => pawl.limits.list());
      if (flags.json === true) return shell.print(prettyJson({ limits: all }));
      if (all.length === 0) return shell.print("no limits");
      const rows = all.map(({ name, allowed, periodMs, burst }) => [
        name,
        String(allowed),
        duration(periodMs),
        String(burst),
      ]);
      shell.print(table(["LIMIT", "ALLOWED", "PERIOD", "BURST"], rows, shell));
    }),
  );
}

function addSet(limits: Command, session: Session): void {
  const command = addCommand(limits, session, {
    name: "set",
    description: "set a rate limit for all workers; the last writer wins",
    examples: [
      "pawl limits set stripe --allowed 100 --period 1s",
      "pawl limits set mail --allowed 10 --period 1m --burst 30",
    ],
  })
    .argument("<limit>", "the name of the limit")
    .requiredOption("--allowed <number>", "how many tokens are refilled per period", decimal)
    .requiredOption("--period <duration>", "the period, such as 1s or 1m")
    .option("--burst <number>", "the most tokens the bucket holds (default: --allowed)", decimal)
    .option("--json", "print JSON: the limit as it was set");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: SetFlags) => {
      const { allowed, period, burst } = flags;
      const all = await withPawl(flags, async (pawl) => {
        await pawl.limits.set(name, { allowed, period, burst });
        return pawl.limits.list();
      });
      const limit = all.find((one) => one.name === name);
      session.shell.print(flags.json === true ? prettyJson(limit ?? null) : `set the limit ${name}`);
    }),
  );
}
