/**
 * The command line of the benchmark: which bench, and how. A mistake becomes a `UsageError` with
 * the given value and the allowed ones; `main.ts` prints it and exits with code 2.
 */

import { parseArgs } from "node:util";
import type { BenchName } from "./bench.js";
import { type PartName, partNames } from "./scale-parts.js";

export interface BenchOptions {
  readonly bench: BenchName;
  /** Print one JSON object as the last line. */
  readonly json: boolean;
  readonly quick: boolean;
  /** How often everything is measured; medians are reported. */
  readonly repeat: number;
  /** Runs to measure; undefined for the bench's default. */
  readonly count: number | undefined;
  /** Runs that the worker executes at once; undefined for the default. */
  readonly concurrency: number | undefined;
  /** Of `scale`: only this curve. */
  readonly part: PartName | undefined;
  /** Of `sustained`: how long. */
  readonly minutes: number | undefined;
  /** Directory for CPU profiles; undefined: nothing is profiled. */
  readonly profile: string | undefined;
}

export class UsageError extends Error {}

export const usage = `usage: npm run bench -- <bench> [options]

  jobs       how fast runs are started, and how fast a worker drains them
  machines   how many steps of 10-step machines a worker commits per second
  workflows  how many steps of 10-step workflows a worker records per second, how long a workflow of one step
             takes, and what it costs to go on with a long journal
  sleepers   what suspended workflows cost the process that served them: memory, timers, connections
  latency    how long one job takes from start to result
  signals    how fast runs that wait are woken: how many per second, and how long one takes
  timers     how late timers fire, and what a claim costs beside a million runs that are not due
  schedules  how late the ticks of schedules fire on an idle worker
  keys       how fast the runs of one partition key go one by one, and what other work notices of them
  children   how fast parents and their children end, and whether many children cost more each than few
  redrive    how fast a bulk operation reruns failed runs, beside starting as many
  limits     how exactly four worker processes keep to one rate limit
  across     how long a run takes that another process serves, and what an idle worker costs
  others     how long a run takes beside 150,000 due runs of a definition that others serve in the same queue
  remote     the same through a server, how many steps and starts per second, and what workers that wait there cost
  server     how many runs per second are started over HTTP, and what long polls cost
  counting   what the metrics of a worker cost: in a worker without a database, and the same jobs drained with and without
  queues     how many messages are sent, received and acknowledged per second, straight to Postgres and through a server
  scale      what a step costs as something grows: curves, printed and kept in bench/results
  sustained  whether everything stays as it is for minutes at 70 % of what a worker can do
  list       how long it takes to look at runs beside a million of them: pages of runs.list, a count, what /metrics asks
  dashboard  how soon each page of the dashboard shows content beside a million runs, its slowest request, and what
             live updates cost: memory of the page, CPU of the server (needs Chromium)
  plans      the plans of the statements inside the hot functions

  --json             the last line is one JSON object
  --quick            small counts: seconds instead of minutes, less exact
  --repeat <n>       measure n times and report medians (default 1, at most 20)
  --count <n>        how many runs (default: others 100, list and dashboard 1000000, sleepers 100000, jobs, keys, queues and server 50000, counting 30000, redrive 20000, machines 5000, workflows, latency, across
                     and remote 1000, scale 60000 steps a point, signals and children 2000), timers (500), ticks (400), or runs that the limit admits
                     in its window (2200)
  --concurrency <n>  runs that a worker executes at once (default: 2000; latency, across and remote 10, server 128 requests, queues 16
                     senders and as many receivers, workflows, timers, schedules and limits 100, scale 500)
  --part <name>      scale: only this curve (${partNames.join(", ")})
  --minutes <n>      sustained, dashboard: how long (default 10; with --quick half a minute)
  --profile <dir>    write CPU profiles into this directory and print what took the time; slows the measurement
  --help

PAWL_BENCH_DATABASE_URL: measure this server (in a new database, dropped at the end) instead of a throw-away one.`;

const names: readonly BenchName[] = [
  "jobs",
  "machines",
  "workflows",
  "sleepers",
  "latency",
  "signals",
  "timers",
  "schedules",
  "keys",
  "children",
  "redrive",
  "limits",
  "across",
  "others",
  "remote",
  "server",
  "counting",
  "queues",
  "scale",
  "sustained",
  "list",
  "dashboard",
  "plans",
];

/** The parsed command line; null if it asks for help. */
export function parseArguments(given: readonly string[]): BenchOptions | null {
  const { values, positionals } = read(given);
  if (values.help === true) return null;
  const [name, ...rest] = positionals;
  if (name === undefined) throw new UsageError(`which bench? One of ${names.join(", ")}`);
  const bench = names.find((one) => one === name);
  if (bench === undefined) throw new UsageError(`there is no bench "${name}"; there are ${names.join(", ")}`);
  if (rest.length > 0) throw new UsageError(`one bench at a time: "${rest.join(" ")}" is too much`);
  if (values.profile === "") throw new UsageError("--profile takes a directory");
  return {
    bench,
    json: values.json === true,
    quick: values.quick === true,
    repeat: wholeNumber("repeat", values.repeat, 20) ?? 1,
    count: wholeNumber("count", values.count, 10_000_000),
    concurrency: wholeNumber("concurrency", values.concurrency, 10_000),
    part: partOf(bench, values.part),
    minutes: wholeNumber("minutes", values.minutes, 600),
    profile: values.profile,
  };
}

interface Read {
  readonly values: {
    readonly json?: boolean;
    readonly quick?: boolean;
    readonly help?: boolean;
    readonly repeat?: string;
    readonly count?: string;
    readonly concurrency?: string;
    readonly part?: string;
    readonly minutes?: string;
    readonly profile?: string;
  };
  readonly positionals: readonly string[];
}

function read(given: readonly string[]): Read {
  try {
    return parseArgs({
      args: [...given],
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        quick: { type: "boolean" },
        help: { type: "boolean" },
        repeat: { type: "string" },
        count: { type: "string" },
        concurrency: { type: "string" },
        part: { type: "string" },
        minutes: { type: "string" },
        profile: { type: "string" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function partOf(bench: BenchName, given: string | undefined): PartName | undefined {
  if (given === undefined) return undefined;
  const part = partNames.find((one) => one === given);
  if (part === undefined)
    throw new UsageError(`there is no part "${given}"; there are ${partNames.join(", ")}`);
  if (bench !== "scale") throw new UsageError("only scale has parts");
  return part;
}

function wholeNumber(name: string, given: string | undefined, max: number): number | undefined {
  if (given === undefined) return undefined;
  const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (value >= 1 && value <= max) return value;
  throw new UsageError(`--${name} takes a whole number from 1 to ${max}, not "${given}"`);
}
