/**
 * The definitions that `job`, `machine` and `workflow` make: frozen, plain data with all options
 * filled in. The types of input, output and signals are in a member that does not exist at run
 * time. Used by the engine (`JobDefinition`, `MachineDefinition`, `WorkflowDefinition`), by `serve`
 * (`AnyDefinition`) and by the client (`InputOf`, `OutputOf`, `RunId`, `SignalArguments`).
 */

import type { Batching } from "./batch.js";
import type { JobContext, StepContext } from "./context.js";
import type { Encodable } from "../values/json-types.js";
import { reservedPrefix } from "../values/names.js";
import { isObject } from "../values/options.js";
import type { Schema } from "./schema.js";
import type { NoPayload, PayloadOf, SignalMap, SignalOptions } from "./signal.js";
import type { WorkflowContext } from "./workflow-context.js";

declare const types: unique symbol;

interface Types<Input, Output, Signals> {
  readonly input: Input;
  readonly output: Output;
  readonly signals: Signals;
}

/**
 * The methods of definitions. `api/serve.ts` adds them, so that this room imports nothing from
 * there.
 */
export interface DefinitionMethods {}

export const definitionMethods = {} as DefinitionMethods;

/** Makes a definition: frozen data with those methods. */
export function makeDefinition<Fields extends object>(fields: Fields): Readonly<Fields> & DefinitionMethods {
  return Object.freeze(Object.assign(Object.create(definitionMethods) as DefinitionMethods, fields));
}

/** The fields and methods of every definition. */
interface DefinitionBase extends DefinitionFields, DefinitionMethods {}

export interface DefinitionFields {
  readonly kind: "job" | "machine" | "workflow";
  readonly name: string;
  readonly version: number;
  readonly queue: string;
  readonly priority: number;
  readonly retentionMs: number;
  /** A run fails if it has not ended this long after it could begin; `null`: no deadline. */
  readonly timeoutMs: number | null;
  /** How many crashes without progress a run survives; `null` means any number. */
  readonly maxCrashes: number | null;
  readonly [types]?: Types<unknown, unknown, SignalMap>;
}

export interface JobDefinition extends DefinitionBase {
  readonly kind: "job";
  readonly maxAttempts: number;
  /**
   * Returns the wait after a failed attempt: a duration, if the user's function keeps to its type.
   */
  readonly backoff: (attempt: number) => unknown;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** How to call `run` with many runs at once; null: one call for each run. */
  readonly batch: Batching | null;
  readonly run: (ctx: JobContext, input: unknown) => unknown;
}

export interface MachineDefinition extends DefinitionBase {
  readonly kind: "machine";
  readonly initial: string;
  readonly state: Schema | undefined;
  readonly steps: ReadonlyMap<string, (ctx: StepContext) => unknown>;
  readonly handle: ((error: unknown, ctx: StepContext) => unknown) | undefined;
  /**
   * Draws the machine as Mermaid text: its steps, and the transitions that the code of its steps
   * names, such as `ctx.next("ship", …)`. Step names that the code computes are missing.
   */
  readonly diagram: () => string;
}

export interface WorkflowDefinition extends DefinitionBase {
  readonly kind: "workflow";
  readonly maxCrashes: number;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly run: (ctx: WorkflowContext, input: unknown) => unknown;
}

/** A definition of any kind, as `serve` takes it. */
export type AnyDefinition = JobDefinition | MachineDefinition | WorkflowDefinition;

const kinds: readonly unknown[] = ["job", "machine", "workflow"] satisfies AnyDefinition["kind"][];

/** Whether it is a definition, of this copy of Pawl or of another in the same process. */
export function isDefinition(value: unknown): value is AnyDefinition {
  return isObject(value) && kinds.includes(value.kind) && "retentionMs" in value;
}

/** A job, as `job` makes it. */
export interface Job<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Signals extends SignalMap = SignalMap,
> extends JobDefinition {
  readonly name: Name;
  readonly [types]?: Types<Input, Output, Signals>;
}

/** A machine, as `machine` makes it. */
export interface Machine<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Signals extends SignalMap = SignalMap,
> extends MachineDefinition {
  readonly name: Name;
  readonly [types]?: Types<Input, Output, Signals>;
}

/** A workflow, as `workflow` makes it. */
export interface Workflow<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Signals extends SignalMap = SignalMap,
> extends WorkflowDefinition {
  readonly name: Name;
  readonly [types]?: Types<Input, Output, Signals>;
}

/** The same job under a name and a queue that are reserved for Pawl itself: see `names.ts`. */
export function reserve<Name extends string, Input, Output, Signals extends SignalMap>(
  job: Job<Name, Input, Output, Signals>,
): Job<`${typeof reservedPrefix}${Name}`, Input, Output, Signals> {
  const name = `${reservedPrefix}${job.name}` as const;
  return makeDefinition({ ...job, name, queue: `${reservedPrefix}${job.queue}` });
}

type TypesOf<Definition extends DefinitionBase> = NonNullable<Definition[typeof types]>;

/** The input of a run of this definition. */
export type InputOf<Definition extends DefinitionBase> = TypesOf<Definition>["input"];

/** The result of a run of this definition. */
export type OutputOf<Definition extends DefinitionBase> = TypesOf<Definition>["output"];

/** The signals that this definition declares; any signal if it declares none. */
type SignalsOf<Definition extends DefinitionBase> = TypesOf<Definition>["signals"];

/** The names of the signals that you can send to a run of this definition. */
export type SignalNameOf<Definition extends DefinitionBase> = keyof SignalsOf<Definition> & string;

/** The payload type of one of these signals; anything but null if it is not declared. */
type SignalPayloadOf<Definition extends DefinitionBase, Name extends SignalNameOf<Definition>> = NonNullable<
  Encodable<PayloadOf<SignalsOf<Definition>[Name]>>
>;

/**
 * The arguments of `signal` after the name. The payload is optional if `{}` is valid; then `{}` is
 * sent.
 */
export type SignalArguments<Definition extends DefinitionBase, Name extends SignalNameOf<Definition>> =
  NoPayload extends SignalPayloadOf<Definition, Name>
    ? [payload?: SignalPayloadOf<Definition, Name>, options?: SignalOptions]
    : [payload: SignalPayloadOf<Definition, Name>, options?: SignalOptions];

/** A definition, or the name of one. */
export type StartTarget = AnyDefinition | string;

/** The definition of a target. A name carries no types. */
export type DefinitionOf<Target extends StartTarget> = Target extends AnyDefinition ? Target : AnyDefinition;

declare const definition: unique symbol;

/** The id of a run, typed by its definition. A plain string works too, without types. */
export type RunId<Definition extends DefinitionBase = AnyDefinition> = string & {
  readonly [definition]?: Definition;
};

/** The definition of a run id. A plain string carries no types. */
export type DefinitionOfRun<Id extends RunId> = Id extends RunId<infer Definition> ? Definition : never;
