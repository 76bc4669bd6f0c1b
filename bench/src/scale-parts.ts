/**
 * The curves of `scale`: what is varied, over which values, and how each point is prepared and measured. Everything else is the same at
 * all points of a curve.
 */

import pg from "pg";
import type { BenchRequest } from "./bench.js";
import { numberedJobName, type Servable, stepsPerMachine } from "./definitions.js";
import { fillRunnable, fillTerminal, plainJobs, settle } from "./fill.js";
import { emptyDatabase } from "./observe.js";
import { type Cost, cpuUs, type Steady, whileSteady } from "./steady.js";

export const partNames = [
  "backlog",
  "terminal",
  "workers",
  "state",
  "concurrency",
  "queues",
  "definitions",
  "journal",
  "pinned",
] as const;

export type PartName = (typeof partNames)[number];

export interface Point extends Cost {
  readonly x: number;
}

export interface Curve {
  readonly title: string;
  readonly xLabel: string;
  readonly xScale: "log" | "linear";
  /** The points of each line; the first point of each is what its others are compared with. */
  readonly lines: Readonly<Record<string, readonly Point[]>>;
}

/** `count` steps at each point, with --quick and without. */
type Part = (request: BenchRequest) => Promise<Curve>;

const usualBacklog = 10_000;
const slices = 4;

const jobsAtOnce = (request: BenchRequest): Steady => ({
  definition: "job",
  concurrency: request.concurrency,
  workers: 1,
  runs: plainJobs,
  stepsPerRun: 1,
  backlog: usualBacklog,
  warmUpSteps: Math.ceil(request.count / 2),
});

/**
 * One point: an empty database, what `prepare` puts in, the backlog, and then so many steps in slices, of which the cheapest counts: other
 * load on the machine makes the same work cost more CPU time, never less.
 */
async function point(
  request: BenchRequest,
  steady: Steady,
  steps: number,
  prepare: (observer: pg.Client) => Promise<void> = async () => {},
): Promise<Cost> {
  const { observer } = request.database;
  await emptyDatabase(observer);
  await prepare(observer);
  await fillRunnable(observer, steady.runs, steady.backlog);
  await settle(observer);
  return whileSteady(request, steady, async (slice) => {
    const costs: Cost[] = [];
    for (let index = 0; index < slices; index++) {
      costs.push(await slice((done) => done >= steps / slices));
    }
    return costs.toSorted((one, other) => cpuUs(one) - cpuUs(other))[0]!;
  });
}

/** The same curve for every value of x. */
async function curve(
  about: Omit<Curve, "lines">,
  xs: readonly number[],
  measure: (x: number) => Promise<Cost>,
): Promise<Curve> {
  const points: Point[] = [];
  for (const x of xs) points.push({ x, ...(await measure(x)) });
  return { ...about, lines: { "": points } };
}

export const parts: Record<PartName, Part> = {
  backlog: (request) =>
    curve(
      { title: "Backlog", xLabel: "runnable runs in the queue", xScale: "log" },
      request.quick ? [1_000, 10_000, 100_000] : [1_000, 10_000, 100_000, 1_000_000],
      (backlog) => point(request, { ...jobsAtOnce(request), backlog }, request.count),
    ),

  terminal: (request) =>
    curve(
      { title: "Completed runs", xLabel: "completed runs in the table", xScale: "log" },
      request.quick ? [0, 10_000, 100_000] : [0, 100_000, 1_000_000, 10_000_000],
      (terminal) =>
        point(request, jobsAtOnce(request), request.count, (observer) => fillTerminal(observer, terminal)),
    ),

  workers: (request) =>
    curve({ title: "Worker processes", xLabel: "worker processes", xScale: "log" }, [1, 2, 4], (workers) =>
      point(request, { ...jobsAtOnce(request), workers }, request.count),
    ),

  state: (request) =>
    curve(
      {
        title: "Size of the state (machines)",
        xLabel: "bytes of state, written in each step",
        xScale: "log",
      },
      [200, 4_096, 65_536],
      (bytes) =>
        point(
          request,
          {
            ...jobsAtOnce(request),
            definition: "padded",
            runs: {
              kind: "machine",
              names: ["bench-padded"],
              queues: ["default"],
              input: { visited: 0, pad: incompressible(bytes - 27) },
            },
            stepsPerRun: stepsPerMachine,
            // A backlog that would not fit into memory says more about the disk.
            backlog: 2 * request.concurrency,
          },
          bytes > 10_000 ? Math.ceil(request.count / 4) : request.count,
        ),
    ),

  concurrency: (request) =>
    curve(
      {
        title: "Concurrency (1: claims and commits are not batched)",
        xLabel: "runs at once",
        xScale: "log",
      },
      [1, 10, 100, 500, 2_000],
      (concurrency) => {
        // Lone commits take a hundred times as long.
        const steps = concurrency <= 10 ? Math.ceil(request.count / 10) : request.count;
        return point(
          request,
          { ...jobsAtOnce(request), concurrency, warmUpSteps: Math.ceil(steps / 2) },
          steps,
        );
      },
    ),

  queues: (request) =>
    curve(
      {
        title: `Queues (${request.concurrency} slots in all)`,
        xLabel: "queues of the worker",
        xScale: "log",
      },
      [1, 10, 100],
      (count) => {
        const queues = Array.from({ length: count }, (_, index) => `queue-${index}`);
        const slots = Math.ceil(request.concurrency / count);
        return point(
          request,
          {
            ...jobsAtOnce(request),
            runs: { ...plainJobs, queues },
            options: { queues: { default: 1, ...Object.fromEntries(queues.map((queue) => [queue, slots])) } },
          },
          request.count,
        );
      },
    ),

  definitions: (request) =>
    curve(
      { title: "Definitions", xLabel: "definitions of the worker", xScale: "log" },
      [1, 10, 100, 1_000],
      (count) => {
        const definition: Servable = count === 1 ? "1 job" : (`${count} jobs` as Servable);
        const names = Array.from({ length: count }, (_, index) => numberedJobName(index));
        return point(
          request,
          { ...jobsAtOnce(request), definition, runs: { ...plainJobs, names } },
          request.count,
        );
      },
    ),

  journal: (request) =>
    curve(
      {
        title: "Length of the journal (workflows, 100 at once)",
        xLabel: "steps of a workflow",
        xScale: "log",
      },
      request.quick ? [10, 100, 1_000] : [10, 100, 1_000, 10_000],
      (steps) =>
        point(
          request,
          {
            ...jobsAtOnce(request),
            definition: "journal",
            concurrency: 100,
            runs: { kind: "workflow", names: ["bench-journal"], queues: ["default"], input: { steps } },
            stepsPerRun: steps,
            backlog: 300,
          },
          // At least once from the first step of a run to its last.
          Math.max(request.count, 100 * steps),
        ),
    ),

  pinned: async (request) => {
    const sliceSeconds = request.quick ? 3 : 5;
    const sliceCount = request.quick ? 5 : 12;
    const about = { title: "An old transaction is open", xLabel: "seconds", xScale: "linear" } as const;
    const lines: Record<string, Point[]> = {};
    for (const line of ["vacuum blocked", "not blocked"]) {
      const { observer, url } = request.database;
      const steady = jobsAtOnce(request);
      await emptyDatabase(observer);
      await fillRunnable(observer, steady.runs, steady.backlog);
      await settle(observer);
      const old = new pg.Client({ connectionString: url });
      await old.connect();
      if (line === "vacuum blocked") {
        await old.query("begin isolation level repeatable read");
        await old.query("select count(*) from pawl.workers");
      }
      lines[line] = await whileSteady(request, steady, async (slice) => {
        const points: Point[] = [];
        for (let index = 1; index <= sliceCount; index++) {
          points.push({
            x: index * sliceSeconds,
            ...(await slice((_, seconds) => seconds >= sliceSeconds)),
          });
        }
        return points;
      });
      await old.end();
    }
    return { ...about, lines };
  },
};

/** Text that neither the server nor anybody else makes shorter; always the same. */
function incompressible(length: number): string {
  let seed = 4711;
  let made = "";
  while (made.length < length) {
    seed = (seed * 48_271) % 2_147_483_647;
    made += seed.toString(36);
  }
  return made.slice(0, length);
}
