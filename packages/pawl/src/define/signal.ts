/**
 * The signals of a definition: `signals: { paid: signal<{ amount: number }>() }`. They give types
 * to the names and payloads in `pawl.signal`, `ctx.awaitSignal` and `ctx.awaited`. At run time Pawl
 * checks only the names. Called in definitions.
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

/** The payload of a signal that is declared without one. */
export type NoPayload = Readonly<Record<string, never>>;

/** The type of the payload of a signal. */
export type PayloadOf<S> = S extends SignalType<infer Payload> ? Payload : never;

/** The options of `pawl.signal`. */
export interface SignalOptions {
  /** A run receives each key once, even after it consumed the first signal. */
  readonly dedupKey?: string | undefined;
}

/** A signal as a step receives it. `name` tells which one it is. */
export type ReceivedSignal<Signals extends SignalMap = SignalMap> = {
  [Name in keyof Signals & string]: {
    readonly name: Name;
    readonly payload: ReceivedPayload<PayloadOf<Signals[Name]>>;
    readonly receivedAt: Date;
  };
}[keyof Signals & string];

type ReceivedPayload<Payload> = unknown extends Payload ? Json : Jsonify<Payload>;

/** The type of `match`: some members of the payload. For an untyped payload, any object. */
export type MatchOf<Payload> = unknown extends Payload
  ? object
  : Payload extends object
    ? Payload extends readonly unknown[] | { toJSON(...given: never): unknown }
      ? never
      : PartOf<Encodable<Payload>>
    : never;

/** Any part of `T`: arrays match if they contain the items, objects if they contain the members. */
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

/** Declares a signal. Its payload is any JSON value but `null`. */
export function signal(): SignalType<NoPayload>;
export function signal<Payload extends JsonObject<Payload>>(): SignalType<NonNullable<Payload>>;
export function signal(): SignalType<never> {
  return marker;
}

/**
 * Checks the names of the signals that a definition declares, and that each was made by `signal`.
 */
export function checkSignals(given: unknown): void {
  if (given === undefined) return;
  if (!isObject(given)) throw new InvalidOption(`signals must be an object, not ${show(given)}`);
  for (const [name, value] of Object.entries(given)) {
    checkSignalName(name);
    if (value === marker) continue;
    throw new InvalidOption(`signal ${show(name)} must be declared by signal<Payload>(), not ${show(value)}`);
  }
}
