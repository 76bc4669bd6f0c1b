/** `pawl runs start`: starts a run by name and, with `--wait`, waits for its end. */

import type { Command } from "commander";
import {
  type Debounce,
  type Duration,
  type Phase,
  type RateLimit,
  RunCancelled,
  RunFailed,
  type Started,
  type StartOptions,
  type Tags,
} from "pawl";
import { type ConnectionOptions, addConnectionOptions, withPawl } from "../terminal/connection.js";
import { type ExitCode, exitCode, UsageError } from "../terminal/failure.js";
import { addTag, decimal, integer, readJson } from "../terminal/input.js";
import { action, addCommand, type Session } from "../terminal/session.js";
import { prettyJson, printable, state } from "../terminal/text.js";

interface Flags extends ConnectionOptions {
  readonly version?: number;
  readonly queue?: string;
  readonly priority?: number;
  readonly partitionKey?: string;
  readonly rateLimit?: string;
  readonly weight?: number;
  readonly delay?: Duration;
  readonly at?: string;
  readonly uniqueKey?: string;
  readonly uniqueScope?: string;
  readonly idempotencyKey?: string;
  readonly retention?: Duration;
  readonly tag?: Tags;
  readonly deadline?: Duration;
  readonly debounceKey?: string;
  readonly debounceDelay?: Duration;
  readonly debounceMaxDelay?: Duration;
  readonly correlationKey?: string;
  readonly concurrency?: string;
  readonly step?: string;
  readonly wait?: true;
  readonly timeout?: Duration;
  readonly json?: true;
}

export function addRunsStart(runs: Command, session: Session): void {
  const command = addCommand(runs, session, {
    name: "start",
    description: "start a run of a definition",
    examples: [
      `pawl runs start signup '{"email":"ada@example.com"}'`,
      "pawl runs start signup @input.json --idempotency-key ada --wait --timeout 30s",
      "pawl runs start reminder --delay 5m",
      "echo 42 | pawl runs start double - --wait",
    ],
  })
    .argument("<name>", "the name of the definition")
    .argument("[input]", "its input: JSON, @file.json, or - for standard input")
    .option("--version <number>", "the version (default: the highest that is served)", integer)
    .option("--queue <queue>", "the queue (default: the definition's)")
    .option("--priority <number>", "lower numbers run first (default: the definition's)", integer)
    .option("--partition-key <key>", "runs that share this key execute one at a time")
    .option("--rate-limit <name>", "the rate limit of its first step: name, or name:key for a bucket per key")
    .option("--weight <number>", "how many tokens of that limit each attempt takes", decimal)
    .option("--delay <duration>", "do not execute it before this time has passed, such as 30s or 5m")
    .option("--at <time>", "do not execute it before this time: ISO 8601")
    .option("--unique-key <key>", "while a run has this key, a second start returns that run")
    .option("--unique-scope <phases>", "the phases in which a run holds its unique key, separated by commas")
    .option("--idempotency-key <key>", "the same key never starts a second run of this name")
    .option("--tag <name=value>", "a label to list runs by; may be given up to 16 times", addTag)
    .option("--deadline <duration>", "fail the run if it has not ended this long after it could begin")
    .option("--debounce-key <key>", "replace the run of this key that has not begun (with --debounce-delay)")
    .option("--debounce-delay <duration>", "begin this long after the last start with the debounce key")
    .option("--debounce-max-delay <duration>", "but at the latest this long after the first start")
    .option("--correlation-key <key>", "a business key to signal and find the run by")
    .option("--concurrency <name>", "the concurrency limit: name, or name:key for a limit per key")
    .option("--retention <duration>", "how long to keep the run once it has ended, such as 30d")
    .option("--step <step>", "for machines: begin at this step")
    .option("--wait", "wait for the end and print the output; ends with 1 if the run does not complete")
    .option("--timeout <duration>", "with --wait: wait at most this long")
    .option("--json", "print JSON: { runId, created, status }, with --wait also output or error");
  addConnectionOptions(command).action(
    action(session, async (name: string, input: string | undefined, flags: Flags) => {
      if (flags.timeout !== undefined && flags.wait !== true) {
        throw new UsageError("--timeout has no effect without --wait: add --wait");
      }
      const value = await readJson(input, "input", session.shell);
      return start(name, value, flags, session);
    }),
  );
}

function start(name: string, input: unknown, flags: Flags, { shell }: Session): Promise<ExitCode> {
  return withPawl(flags, async (pawl) => {
    const started = await pawl.start(name, input, optionsOf(flags));
    const { runId, created, status } = started;
    if (started.served === false) shell.printError(unknownName(name, started));
    const printText = (text: string): void => {
      if (flags.json !== true) shell.print(text);
    };
    if (flags.wait === undefined) {
      if (flags.json === true) shell.print(prettyJson(started));
      printText(
        created
          ? `started run ${runId}`
          : `run ${runId} was started before; it is ${state(status, shell.colors)}`,
      );
      return exitCode.ok;
    }
    try {
      const output = await pawl.result(runId, { timeout: flags.timeout });
      shell.print(prettyJson(flags.json === true ? { runId, created, status: "completed", output } : output));
      return exitCode.ok;
    } catch (error) {
      if (!(error instanceof RunFailed || error instanceof RunCancelled) || flags.json !== true) throw error;
      const ended =
        error instanceof RunFailed ? { status: "failed", error: error.error } : { status: "cancelled" };
      shell.print(prettyJson({ runId, created, ...ended }));
      return exitCode.no;
    }
  });
}

function unknownName(name: string, { runId, nearest }: Started): string {
  const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return printable(`pawl: no worker has ever registered "${name}", so run ${runId} waits for one${meant}`);
}

function optionsOf(flags: Flags): StartOptions {
  const { version, queue, priority, partitionKey, rateLimit, weight, delay, at } = flags;
  const { uniqueKey, uniqueScope, idempotencyKey, retention, step } = flags;
  const { tag, deadline, correlationKey, concurrency } = flags;
  return {
    version,
    queue,
    priority,
    partitionKey,
    rateLimit: rateLimit === undefined ? undefined : limitOf(rateLimit),
    weight,
    delay,
    at,
    uniqueKey,
    uniqueScope: uniqueScope?.split(",") as Phase[] | undefined,
    idempotencyKey,
    retention,
    step,
    tags: tag,
    timeout: deadline,
    debounce: debounceOf(flags),
    correlationKey,
    concurrency: concurrency === undefined ? undefined : limitOf(concurrency),
  };
}

function debounceOf({ debounceKey, debounceDelay, debounceMaxDelay }: Flags): Debounce | undefined {
  if (debounceKey === undefined && debounceDelay === undefined && debounceMaxDelay === undefined) {
    return undefined;
  }
  if (debounceKey === undefined || debounceDelay === undefined) {
    throw new UsageError("a debounce needs both --debounce-key and --debounce-delay: add the missing one");
  }
  return { key: debounceKey, delay: debounceDelay, maxDelay: debounceMaxDelay };
}

function limitOf(text: string): RateLimit {
  const colon = text.indexOf(":");
  return colon === -1 ? text : { name: text.slice(0, colon), key: text.slice(colon + 1) };
}
