/**
 * The signals that a definition knows: `signals: { paid: signal<{ amount: number }>() }`. They type the names and
 * payloads that are sent (`pawl.signal`), awaited (`ctx.awaitSignal`) and received (`ctx.awaited`), and nothing else:
 * at run time only their names are checked. Called in definitions.
 */

import { InvalidOption } from "../values/errors.js";
import type { Encodable, Json, Jsonify, JsonObject } from "../values/json-types.js";
import { checkSignalName } from "../values/names.js";
import { isObject } from "../values/options.js";
import { show } from "../values/show.js";

declare const payload: unique symbol;

/** A signal with a payload of type `Payload`. */
export interface SignalType<Payload> {
  readonly [payload]?: Payload;
}

/** The signals of a definition by name. */
export type SignalMap = Readonly<Record<string, SignalType<unknown>>>;

/** What is sent with a signal that was declared without a payload. */
export type NoPayload = Readonly<Record<string, never>>;

/** The type of the payload of a signal. */
export type PayloadOf<S> = S extends SignalType<infer Payload> ? Payload : never;

/** The options of sending a signal. */
export interface SignalOptions {
  /** The same key sent to the same run again is not received again, not even once the first was consumed. */
  readonly dedupKey?: string | undefined;
}

/** A signal as a step sees it. `name` tells which of the declared ones it is. */
export type ReceivedSignal<Signals extends SignalMap = SignalMap> = {
  [Name in keyof Signals & string]: {
    readonly name: Name;
    readonly payload: ReceivedPayload<PayloadOf<Signals[Name]>>;
    readonly receivedAt: Date;
  };
}[keyof Signals & string];

type ReceivedPayload<Payload> = unknown extends Payload ? Json : Jsonify<Payload>;

/** What an await can ask of a payload: some of its members. Only objects have any; of an untyped one, any object. */
export type MatchOf<Payload> = unknown extends Payload
  ? object
  : Payload extends object
    ? Payload extends readonly unknown[] | { toJSON(...given: never): unknown }
      ? never
      : PartOf<Encodable<Payload>>
    : never;

/** Any part of `T`: lists match if they contain the items, objects if they contain the members. */
type PartOf<T> = unknown extends T
  ? T
  : T extends readonly (infer Item)[]
    ? readonly PartOf<Item>[]
    : T extends { toJSON(...given: never): unknown }
      ? T
      : T extends object
        ? { readonly [K in keyof T]?: PartOf<T[K]> }
        : T;

const marker: SignalType<never> = Object.freeze({});

/** Declares a signal. A payload is an object, a list or a plain value, but never `null`. */
export function signal(): SignalType<NoPayload>;
export function signal<Payload extends JsonObject<Payload>>(): SignalType<NonNullable<Payload>>;
export function signal(): SignalType<never> {
  return marker;
}

/** Checks the names of the signals that a definition declares, and that each was made by `signal`. */
export function checkSignals(given: unknown): void {
  if (given === undefined) return;
  if (!isObject(given)) throw new InvalidOption(`signals must be an object, not ${show(given)}`);
  for (const [name, value] of Object.entries(given)) {
    checkSignalName(name);
    if (value === marker) continue;
    throw new InvalidOption(`signal ${show(name)} must be declared by signal<Payload>(), not ${show(value)}`);
  }
}
