/**
 * The definitions of the benches. Their own code costs nothing, so that the benches measure the
 * engine. The worker process serves them and the client process starts them.
 */

import { child, job, machine, signal, type StartItem, type, workflow } from "pawl";

/** The input of every run: about as large as that of a real job. */
export const input = { orderId: 4711, email: "customer@example.com", visited: 0 };

type State = typeof input;

/** The default input of a run. */
export const plain = (): StartItem<State> => ({ input });

export const stepsPerMachine = 10;
export const waitsPerMachine = 10;
export const stepsPerWorkflow = 10;

const visited = (state: State): State => ({ ...state, visited: state.visited + 1 });

/** A job that does nothing. `onEnd` is called when it is through, before that is committed. */
export function noOpJob(onEnd: () => void = () => {}) {
  return job({
    name: "bench-job",
    run: (_ctx, _input: State) => {
      onEnd();
      return null;
    },
  });
}

/** A machine of ten steps, each of which changes the state. */
export function tenStepMachine(onEnd: () => void = () => {}) {
  return machine({
    name: "bench-machine",
    initial: "one",
    state: type<State>(),
    steps: {
      one: (ctx) => ctx.next("two", visited(ctx.state)),
      two: (ctx) => ctx.next("three", visited(ctx.state)),
      three: (ctx) => ctx.next("four", visited(ctx.state)),
      four: (ctx) => ctx.next("five", visited(ctx.state)),
      five: (ctx) => ctx.next("six", visited(ctx.state)),
      six: (ctx) => ctx.next("seven", visited(ctx.state)),
      seven: (ctx) => ctx.next("eight", visited(ctx.state)),
      eight: (ctx) => ctx.next("nine", visited(ctx.state)),
      nine: (ctx) => ctx.next("ten", visited(ctx.state)),
      ten: (ctx) => {
        onEnd();
        return ctx.done({ visited: ctx.state.visited });
      },
    },
  });
}

/** A workflow of ten steps. */
export const tenStepWorkflow = (onEnd: () => void = () => {}) => visitingWorkflow("bench-workflow", onEnd);

/** The same, not counted. */
export const warmUpWorkflow = () => visitingWorkflow("bench-warm-up", () => {});

function visitingWorkflow(name: string, onEnd: () => void) {
  return workflow({
    name,
    run: async (ctx, given: State) => {
      let state = given;
      for (let index = 0; index < stepsPerWorkflow; index++) {
        state = await ctx.step.run(`visit-${index}`, () => visited(state));
      }
      onEnd();
      return { visited: state.visited };
    },
  });
}

/** A workflow of one step. */
export function oneStepWorkflow() {
  return workflow({
    name: "bench-one-step",
    run: (ctx, given: State) => ctx.step.run("visit", () => visited(given)),
  });
}

/** A workflow that records one step and then sleeps for a day. */
export function sleepingWorkflow() {
  return workflow({
    name: "bench-sleeper",
    run: async (ctx, given: State) => {
      const state = await ctx.step.run("visit", () => visited(given));
      await ctx.step.sleep("night", "1d");
      return state;
    },
  });
}

/** A workflow that records so many steps, 500 at a time, and then waits for a signal. */
export function longWorkflow() {
  return workflow({
    name: "bench-long",
    signals: { go: signal() },
    run: async (ctx, { steps }: { steps: number }) => {
      for (let begun = 0; begun < steps; begun += 500) {
        const indexes = Array.from({ length: Math.min(500, steps - begun) }, (_, index) => begun + index);
        await Promise.all(indexes.map((index) => ctx.step.run(`step-${index}`, () => index)));
      }
      await ctx.step.waitForEvent("go");
      return steps;
    },
  });
}

/** A job that does nothing, to be told from the one that is counted. */
export function keyedJob() {
  return job({ name: "bench-keyed-job", run: (_ctx, _input: State) => null });
}

/** A machine that waits ten times for a signal. `onEnd` is called when the last has woken it. */
export function waitingMachine(onEnd: () => void = () => {}) {
  return machine({
    name: "bench-waiting",
    initial: "wait",
    state: type<State>(),
    signals: { go: signal() },
    steps: {
      wait: (ctx) => ctx.awaitSignal("go", "woken", ctx.state),
      woken: (ctx) => {
        const state = visited(ctx.state);
        if (state.visited < waitsPerMachine) return ctx.next("wait", state);
        onEnd();
        return ctx.done({ visited: state.visited });
      },
    },
  });
}

/** A machine that spawns so many no-op jobs and ends when they have. */
export function parentMachine(onEnd: () => void = () => {}) {
  const childJob = noOpJob();
  return machine({
    name: "bench-parent",
    initial: "fan-out",
    state: type<{ children: number }>(),
    steps: {
      "fan-out": (ctx) =>
        ctx.spawn(
          "gather",
          Array.from({ length: ctx.state.children }, () => child(childJob, input)),
          ctx.state,
        ),
      gather: (ctx) => {
        onEnd();
        return ctx.done({ ended: ctx.children.filter(({ status }) => status === "completed").length });
      },
    },
  });
}

/**
 * A job that answers with when it was entered, on the clock that all processes of a machine share.
 */
export function clockedJob() {
  return job({
    name: "bench-clocked",
    run: (_ctx, _input: State) => ({ enteredMs: machineMs() }),
  });
}

/** Milliseconds on a clock that all processes of this machine share. */
export const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The n-th of many jobs that do nothing. */
export const numberedJobName = (index: number): string => `bench-job-${index}`;

const numberedJobs = (count: number, onEnd: () => void) =>
  Array.from({ length: count }, (_, index) =>
    job({
      name: numberedJobName(index),
      run: (_ctx, _input: State) => {
        onEnd();
        return null;
      },
    }),
  );

/** A machine of ten steps with a state of the size of its input; calls `onStep` in each step. */
function paddedMachine(onStep: () => void) {
  return machine({
    name: "bench-padded",
    initial: "step",
    state: type<{ visited: number; pad: string }>(),
    steps: {
      step: (ctx) => {
        onStep();
        const steps = ctx.state.visited + 1;
        return steps < stepsPerMachine
          ? ctx.next("step", { ...ctx.state, visited: steps })
          : ctx.done({ visited: steps });
      },
    },
  });
}

/** A workflow of so many steps, one after the other; `onStep` is called in each. */
function journalWorkflow(onStep: () => void) {
  return workflow({
    name: "bench-journal",
    run: async (ctx, { steps }: { steps: number }) => {
      for (let index = 0; index < steps; index++) {
        await ctx.step.run(`step-${index}`, () => {
          onStep();
          return index;
        });
      }
      return steps;
    },
  });
}

/** The definitions that a worker process can serve; calls `onEnd` for the counted runs. */
export const servable = {
  job: (onEnd: () => void) => [noOpJob(onEnd)],
  machine: (onEnd: () => void) => [tenStepMachine(onEnd)],
  workflow: (onEnd: () => void) => [tenStepWorkflow(onEnd), warmUpWorkflow()],
  waiting: (onEnd: () => void) => [waitingMachine(onEnd)],
  "job-and-keyed": (onEnd: () => void) => [noOpJob(onEnd), keyedJob()],
  parent: (onEnd: () => void) => [parentMachine(onEnd), noOpJob()],
  clocked: () => [clockedJob()],
  padded: (onStep: () => void) => [paddedMachine(onStep)],
  journal: (onStep: () => void) => [journalWorkflow(onStep)],
  "1 job": (onEnd: () => void) => numberedJobs(1, onEnd),
  "10 jobs": (onEnd: () => void) => numberedJobs(10, onEnd),
  "100 jobs": (onEnd: () => void) => numberedJobs(100, onEnd),
  "1000 jobs": (onEnd: () => void) => numberedJobs(1_000, onEnd),
};

export type Servable = keyof typeof servable;
