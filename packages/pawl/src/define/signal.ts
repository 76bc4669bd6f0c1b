/**
 * The signals that a definition knows: `signals: { paid: signal<{ amount: number }>() }`. They type the names and
 * payloads of `pawl.signal` and nothing else: at run time they are only checked. Called in definitions.
 */

import { InvalidOption } from "./errors.js";
import type { JsonObject } from "./json-types.js";
import { checkSignalName } from "./names.js";
import { isObject } from "./options.js";
import { show } from "./show.js";

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
