/**
 * The curves of `scale`: the quantity that grows, its values, and how each point is prepared and
 * measured. Everything else is the same at all points of a curve.
 */

import pg from "pg";
import type { BenchRequest } from "./bench.js";
import { numberedJobName, type Servable, stepsPerMachine } from "./definitions.js";
import { fillRunnable, fillTerminal, plainJobs, settle } from "./fill.js";
import { emptyDatabase } from "./observe.js";
import { type Cost, cpuUs, type Slice, type Steady, whileSteady } from "./steady.js";

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
  /** The points of each line. The others are compared with the first. */
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

/** How one point of a curve is made. */
interface Setup {
  readonly steady: Steady;
  /** How many steps are measured. */
  readonly steps: number;
  /** Inserts the rows that exist beside the backlog. */
  readonly prepare?: (observer: pg.Client) => Promise<void>;
}

/** The points of a curve, one after the other, each in an empty database. */
async function curve(
  request: BenchRequest,
  about: Omit<Curve, "lines">,
  xs: readonly number[],
  setupOf: (x: number) => Setup,
): Promise<Curve> {
  const { database, profiling } = request;
  const points: Point[] = [];
  for (const x of xs) {
    const { steady, steps, prepare } = setupOf(x);
    await emptyDatabase(database.observer);
    await prepare?.(database.observer);
    await fillRunnable(database.observer, steady.runs, steady.backlog);
    await settle(database.observer);
    const cost = await whileSteady(request, steady, (slice) =>
      profiling.server(`${x} ${about.xLabel}`, database, () => cheapest(slice, steps)),
    );
    points.push({ x, ...cost });
  }
  return { ...about, lines: { "": points } };
}

/**
 * The cheapest of some slices: other load on the machine makes the same work cost more CPU time,
 * never less.
 */
async function cheapest(slice: Slice, steps: number): Promise<Cost> {
  const costs: Cost[] = [];
  for (let index = 0; index < slices; index++) costs.push(await slice((done) => done >= steps / slices));
  return costs.toSorted((one, other) => cpuUs(one) - cpuUs(other))[0]!;
}

export const parts: Record<PartName, Part> = {
  backlog: (request) =>
    curve(
      request,
      { title: "Backlog", xLabel: "runnable runs in the queue", xScale: "log" },
      request.quick ? [1_000, 10_000, 100_000] : [1_000, 10_000, 100_000, 1_000_000],
      (backlog) => ({ steady: { ...jobsAtOnce(request), backlog }, steps: request.count }),
    ),

  terminal: (request) =>
    curve(
      request,
      { title: "Completed runs", xLabel: "completed runs in the table", xScale: "log" },
      request.quick ? [0, 10_000, 100_000] : [0, 100_000, 1_000_000, 10_000_000],
      (terminal) => ({
        steady: jobsAtOnce(request),
        steps: request.count,
        prepare: (observer) => fillTerminal(observer, terminal),
      }),
    ),

  workers: (request) =>
    curve(
      request,
      { title: "Worker processes", xLabel: "worker processes", xScale: "log" },
      [1, 2, 4],
      (workers) => ({ steady: { ...jobsAtOnce(request), workers }, steps: request.count }),
    ),

  state: (request) =>
    curve(
      request,
      {
        title: "Size of the state (machines)",
        xLabel: "bytes of state, written in each step",
        xScale: "log",
      },
      [200, 4_096, 65_536],
      (bytes) => ({
        steady: {
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
          warmUpSteps: request.concurrency,
        },
        steps: bytes > 10_000 ? Math.ceil(request.count / 10) : request.count,
      }),
    ),

  concurrency: (request) =>
    curve(
      request,
      {
        title: "Concurrency (1: claims and commits are not batched)",
        xLabel: "runs at once",
        xScale: "log",
      },
      [1, 10, 100, 500, 2_000],
      (concurrency) => {
        // Lone commits take a hundred times as long.
        const steps = concurrency <= 10 ? Math.ceil(request.count / 20) : request.count;
        return {
          steady: { ...jobsAtOnce(request), concurrency, warmUpSteps: Math.ceil(steps / 2) },
          steps,
        };
      },
    ),

  queues: async (request) => {
    const about = { title: "Queues", xLabel: "queues of the worker", xScale: "log" } as const;
    const slotsAll = request.concurrency;
    const slotsEach = Math.ceil(request.concurrency / 10);
    const ofSlots = (slotsOf: (queues: number) => number): Promise<Curve> =>
      curve(request, about, [1, 10, 100], (count) => {
        const queues = Array.from({ length: count }, (_, index) => `queue-${index}`);
        const slots = Object.fromEntries(queues.map((queue) => [queue, slotsOf(count)]));
        return {
          steady: {
            ...jobsAtOnce(request),
            runs: { ...plainJobs, queues },
            options: { queues: { default: 1, ...slots } },
          },
          steps: request.count,
        };
      });
    const shared = await ofSlots((count) => Math.ceil(slotsAll / count));
    const each = await ofSlots(() => slotsEach);
    const lines = {
      [`${slotsAll} slots in all`]: shared.lines[""] ?? [],
      [`${slotsEach} slots each`]: each.lines[""] ?? [],
    };
    return { ...about, lines };
  },

  definitions: (request) =>
    curve(
      request,
      { title: "Definitions", xLabel: "definitions of the worker", xScale: "log" },
      [1, 10, 100, 1_000],
      (count) => ({
        steady: {
          ...jobsAtOnce(request),
          definition: count === 1 ? "1 job" : (`${count} jobs` as Servable),
          runs: { ...plainJobs, names: Array.from({ length: count }, (_, index) => numberedJobName(index)) },
        },
        steps: request.count,
      }),
    ),

  journal: (request) =>
    curve(
      request,
      {
        title: "Length of the journal (workflows, 100 at once)",
        xLabel: "steps of a workflow",
        xScale: "log",
      },
      request.quick ? [10, 100, 1_000] : [10, 100, 1_000, 10_000],
      (steps) => ({
        steady: {
          ...jobsAtOnce(request),
          definition: "journal",
          concurrency: 100,
          runs: { kind: "workflow", names: ["bench-journal"], queues: ["default"], input: { steps } },
          stepsPerRun: steps,
          backlog: 300,
        },
        // At least once from the first step of a run to its last.
        steps: Math.max(request.count, 100 * steps),
      }),
    ),

  pinned: async (request) => {
    const { observer, url } = request.database;
    const sliceSeconds = request.quick ? 3 : 5;
    const sliceCount = request.quick ? 5 : 12;
    const steady = jobsAtOnce(request);
    const lines: Record<string, Point[]> = {};
    for (const line of ["vacuum blocked", "not blocked"]) {
      await emptyDatabase(observer);
      await fillRunnable(observer, steady.runs, steady.backlog);
      await settle(observer);
      const old = new pg.Client({ connectionString: url });
      await old.connect();
      if (line === "vacuum blocked") {
        await old.query("begin isolation level repeatable read");
        await old.query("select count(*) from pawl.workers");
      }
      lines[line] = await whileSteady(request, steady, (slice) =>
        request.profiling.server(line, request.database, async () => {
          const points: Point[] = [];
          for (let index = 1; index <= sliceCount; index++) {
            const cost = await slice((_, seconds) => seconds >= sliceSeconds);
            points.push({ x: index * sliceSeconds, ...cost });
          }
          return points;
        }),
      );
      await old.end();
    }
    return { title: "An old transaction is open", xLabel: "seconds", xScale: "linear", lines };
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
