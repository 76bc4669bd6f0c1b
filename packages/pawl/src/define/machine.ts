/**
 * `machine`: named steps over a typed state. Each step gets `ctx` and returns one outcome that
 * `ctx` made. Pawl commits the outcome and the new state before the next step begins. The types
 * check step names, signal names, the next state, the initial step, and that every step returns an
 * outcome; each error points to the wrong argument. The output is the union over all `ctx.done`
 * calls. Called by users; returns the frozen definition that the engine reads.
 */

import type { StandardSchemaV1 } from "@standard-schema/spec";

import type { StepContext } from "./context.js";
import { type Machine, type MachineDefinition, makeDefinition } from "./definition.js";
import { checkDefinition, type DefinitionOptions } from "./definition-options.js";
import { machineGraph, toMermaid } from "./machine-graph.js";
import { InvalidOption } from "../values/errors.js";
import type { Json, Jsonify, JsonSafe } from "../values/json-types.js";
import { checkStepName } from "../values/names.js";
import { checkFunction, isObject, suggest } from "../values/options.js";
import type { Done, Outcome } from "./outcome.js";
import { checkSchema, type Schema, type Unchecked } from "./schema.js";
import { show } from "../values/show.js";
import type { SignalMap } from "./signal.js";

/** The state of a machine that declares none: any object, read as JSON. */
type UntypedState = Unchecked<object, { readonly [member: string]: Json | undefined }>;

/** The type of the next state: the output of a schema; for a type alone, also its input. */
type Given<State extends Schema> =
  State extends Unchecked<infer Input, unknown> ? Input : StandardSchemaV1.InferOutput<State>;

/** A schema whose output JSON cannot represent is a compile error at `state`. */
type StorableSchema<State extends Schema> = Schema<unknown, JsonSafe<StandardSchemaV1.InferOutput<State>>>;

/** The `ctx` of the steps of a machine. */
type MachineContext<Step extends string, State extends Schema, Signals extends SignalMap> = StepContext<
  Step,
  StandardSchemaV1.InferOutput<State>,
  NoInfer<Signals>,
  Given<State>
>;

type Returned = Outcome | Promise<Outcome>;

/** The results of the `done` outcomes that the steps return. */
type ResultOf<Outcomes> = Outcomes extends Done<infer Result> ? Result : never;

/** The options of `machine`. */
export interface MachineOptions<
  Name extends string,
  Step extends string,
  Returns,
  Handled,
  State extends Schema,
  Signals extends SignalMap,
> extends DefinitionOptions<Name, Signals> {
  /** The type of the state: a schema, or `type<T>()`. The input of a run is its first state. */
  readonly state?: (State & StorableSchema<State>) | undefined;
  /** TypeScript infers the step names from the first part and the return types from the second. */
  readonly steps: { readonly [K in Step]: (ctx: MachineContext<Step, State, Signals>) => Returned } & {
    readonly [K in keyof Returns]: (ctx: MachineContext<Step, State, Signals>) => Returns[K];
  };
  /** Returns the outcome for an error that a step threw. Default: `ctx.stop(error)`. */
  readonly handle?: ((error: unknown, ctx: MachineContext<Step, State, Signals>) => Handled) | undefined;
}

/** The first step. Required unless a step is called "start". */
type InitialOption<Step extends string> = "start" extends Step
  ? { readonly initial?: NoInfer<Step> | undefined }
  : { readonly initial: NoInfer<Step> };

/** Defines a machine. */
export function machine<
  const Name extends string,
  Step extends string,
  Returns,
  Handled extends Returned = never,
  State extends Schema = UntypedState,
  Signals extends SignalMap = SignalMap,
>(
  options: MachineOptions<Name, Step, Returns, Handled, State, Signals> & InitialOption<Step>,
): Machine<
  Name,
  StandardSchemaV1.InferInput<State>,
  Jsonify<ResultOf<Awaited<Returns[keyof Returns] | Handled>>>,
  Signals
>;
export function machine(options: unknown): MachineDefinition {
  const { base, own } = checkDefinition("machine", options, ["initial", "state", "steps", "handle"]);
  const steps = checkSteps(own.steps);
  const initial = checkInitial(own.initial, steps);
  const handle = own.handle === undefined ? undefined : checkFunction(own.handle, "handle");
  const state = checkSchema(own.state, "state");
  const diagram = (): string => toMermaid(machineGraph({ initial, steps, handle }));
  return makeDefinition({ ...base, initial, state, steps, handle, diagram });
}

function checkSteps(given: unknown): MachineDefinition["steps"] {
  if (!isObject(given) || Object.keys(given).length === 0) {
    throw new InvalidOption(`steps must be an object with at least one step, not ${show(given)}`);
  }
  return new Map(
    Object.entries(given).map(([name, step]) => [checkStepName(name), checkFunction(step, `step "${name}"`)]),
  );
}

function checkInitial(given: unknown, steps: MachineDefinition["steps"]): string {
  const initial = given ?? "start";
  if (typeof initial === "string" && steps.has(initial)) return initial;
  const names = [...steps.keys()];
  const meant = typeof given === "string" ? suggest(given, names) : "";
  const problem =
    given === undefined
      ? 'initial must be given, because no step is called "start"'
      : `initial must be a step, not ${show(given)}`;
  throw new InvalidOption(`${problem}; the steps are ${names.join(", ")}${meant}`);
}
