/** `pawl limits`: lists and sets limits: rates, and how many runs execute at once. */

import type { Command } from "commander";
import type { Duration, LimitOptions } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "./terminal/connection.js";
import { UsageError } from "./terminal/failure.js";
import { decimal, integer } from "./terminal/input.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import { table } from "./terminal/table.js";
import { duration, prettyJson } from "./terminal/text.js";

interface SetFlags extends ConnectionOptions {
  readonly allowed?: number;
  readonly period?: Duration;
  readonly burst?: number;
  readonly concurrent?: number;
  readonly json?: true;
}

export function addLimits(program: Command, session: Session): void {
  const limits = addGroup(program, session, {
    name: "limits",
    description: "list and set limits: rates, and how many runs execute at once",
    examples: [
      "pawl limits list",
      "pawl limits set stripe --allowed 100 --period 1s",
      "pawl limits set gpu --concurrent 3",
    ],
  });
  addList(limits, session);
  addSet(limits, session);
}

function addList(limits: Command, session: Session): void {
  const command = addCommand(limits, session, {
    name: "list",
    description: "list the limits",
    examples: ["pawl limits list", "pawl limits list --json"],
  }).option("--json", "print JSON: { limits }");
  addConnectionOptions(command).action(
    action(session, async (flags: ConnectionOptions & { readonly json?: true }) => {
      const { shell } = session;
      const all = await withPawl(flags, (pawl) => pawl.limits.list());
      if (flags.json === true) return shell.print(prettyJson({ limits: all }));
      if (all.length === 0) return shell.print("no limits");
      const rows = all.map(({ name, allowed, periodMs, burst, concurrent }) => [
        name,
        String(allowed ?? "-"),
        periodMs === null ? "-" : duration(periodMs),
        String(burst ?? "-"),
        String(concurrent ?? "-"),
      ]);
      shell.print(table(["LIMIT", "ALLOWED", "PERIOD", "BURST", "CONCURRENT"], rows, shell));
    }),
  );
}

function addSet(limits: Command, session: Session): void {
  const command = addCommand(limits, session, {
    name: "set",
    description: "set a limit for all workers: a rate, --concurrent, or both; the last writer wins",
    examples: [
      "pawl limits set stripe --allowed 100 --period 1s",
      "pawl limits set mail --allowed 10 --period 1m --burst 30",
      "pawl limits set gpu --concurrent 3",
    ],
  })
    .argument("<limit>", "the name of the limit")
    .option("--allowed <number>", "how many tokens are refilled per period", decimal)
    .option("--period <duration>", "the period, such as 1s or 1m")
    .option("--burst <number>", "the most tokens the bucket holds (default: --allowed)", decimal)
    .option("--concurrent <number>", "how many runs execute at once, of each key", integer)
    .option("--json", "print JSON: the limit as it was set");
  addConnectionOptions(command).action(
    action(session, async (name: string, flags: SetFlags) => {
      const { allowed, period, burst, concurrent } = flags;
      if (allowed === undefined && concurrent === undefined) {
        throw new UsageError("a limit needs a rate or slots: add --allowed and --period, or --concurrent");
      }
      const all = await withPawl(flags, async (pawl) => {
        // The client checks which of them belong together.
        await pawl.limits.set(name, { allowed, period, burst, concurrent } as LimitOptions);
        return pawl.limits.list();
      });
      const limit = all.find((one) => one.name === name);
      session.shell.print(flags.json === true ? prettyJson(limit ?? null) : `set the limit ${name}`);
    }),
  );
}
