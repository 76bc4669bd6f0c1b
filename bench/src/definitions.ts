/**
 * What the benches run: definitions whose own code costs nothing, so that what is measured is the engine. The worker
 * process serves them and the client process starts them, so both make them here.
 */

import { job, machine, type } from "pawl";

/** What starts every run: about as much as a real job is given. */
export const input = { orderId: 4711, email: "customer@example.com", visited: 0 };

type State = typeof input;

export const stepsPerMachine = 10;

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
  const visited = (state: State): State => ({ ...state, visited: state.visited + 1 });
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

export type BenchDefinition = ReturnType<typeof noOpJob> | ReturnType<typeof tenStepMachine>;
