/** `pawl runs find` and `pawl runs signal-all`: address runs by their keys instead of their ids. */

import type { Command } from "commander";
import type { FindOptions } from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { plural, prettyJson } from "../terminal/text.js";
import { showRuns } from "./list.js";

interface FindFlags extends ConnectionOptions {
  readonly idempotencyKey?: string;
  readonly uniqueKey?: string;
  readonly correlationKey?: string;
  readonly name?: string;
  readonly json?: true;
}

interface SignalFlags extends ConnectionOptions {
  readonly name?: string;
  readonly dedupKey?: string;
  readonly json?: true;
}

export function addRunsFind(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "find",
    description: "find runs by an idempotency key, a unique key or a correlation key",
    examples: [
      "pawl runs find --correlation-key order-42",
      "pawl runs find --idempotency-key ada --name signup --json",
    ],
  })
    .option("--idempotency-key <key>", "the runs that were started with this idempotency key")
    .option("--unique-key <key>", "the run that holds this unique key now")
    .option("--correlation-key <key>", "the runs that were started with this correlation key")
    .option("--name <name>", "only runs of this definition")
    .option("--json", "print JSON: { runs }");
  addConnectionOptions(command).action(
    action(session, async (flags: FindFlags) => {
      const { idempotencyKey, uniqueKey, correlationKey, name } = flags;
      // The library checks that there is exactly one key.
      const keys = { idempotencyKey, uniqueKey, correlationKey, name } as FindOptions;
      const found = await withPawl(flags, (pawl) => pawl.runs.find(keys));
      session.shell.print(flags.json === true ? prettyJson({ runs: found }) : showRuns(found, session.shell));
    }),
  );
}

export function addRunsSignalAll(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "signal-all",
    description: "send a signal to all live runs of a correlation key",
    examples: [
      `pawl runs signal-all order-42 paid '{"euros":25}'`,
      "pawl runs signal-all order-42 paid --name checkout --dedup-key payment-7",
    ],
  })
    .argument("<key>", "the correlation key of their starts")
    .argument("<signal>", "the name of the signal")
    .argument("[payload]", "JSON, @file.json, or - for standard input (default: {})")
    .option("--name <name>", "only runs of this definition")
    .option("--dedup-key <key>", "a second signal with this key changes nothing")
    .option("--json", "print JSON: { delivered, duplicate, full }, lists of run ids");
  addConnectionOptions(command).action(
    action(session, async (key: string, signal: string, given: string | undefined, flags: SignalFlags) => {
      const payload = await readJson(given, "payload", session.shell);
      const { name, dedupKey } = flags;
      const sent = await withPawl(flags, (pawl) =>
        pawl.signal({ correlationKey: key, name }, signal, payload === undefined ? {} : (payload as object), {
          dedupKey,
        }),
      );
      const { delivered, duplicate, full } = sent;
      const others = [
        ...(duplicate.length === 0 ? [] : [`${plural(duplicate.length, "run")} had it before`]),
        ...(full.length === 0 ? [] : [`the inbox of ${full.join(", ")} is full`]),
      ];
      const whom = delivered.length === 0 ? "" : `: ${delivered.join(", ")}`;
      const text = [`delivered to ${plural(delivered.length, "run")}${whom}`, ...others].join("; ");
      session.shell.print(flags.json === true ? prettyJson(sent) : text);
    }),
  );
}
