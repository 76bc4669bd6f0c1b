/**
 * What a random sequence is made of: intents, which say what to do and to which of the runs, claims or workers that there are
 * by then (`pick`). `session.ts` makes a command of each. So a sequence stays meaningful when fast-check leaves parts of it
 * out to make a counterexample short.
 */

import fc from "fast-check";
import type { Json, NewRun, Outcome } from "../runs/model.js";

type Without<T, Key extends string> = T extends unknown ? Omit<T, Key> : never;

/** An outcome; what its step was shown, the session knows. */
type OutcomeIntent = Without<Outcome, "shown">;

export interface SignalIntent {
  readonly pick: number;
  readonly name: string;
  readonly payload: Json;
  readonly dedupKey?: string;
}

export type Intent =
  | { readonly what: "start"; readonly run: NewRun; readonly isDirect: boolean; readonly worker: string }
  | { readonly what: "claim"; readonly worker: string; readonly queue: string; readonly limit: number }
  | {
      readonly what: "commit";
      readonly pick: number;
      readonly outcome: OutcomeIntent;
      /** Asks for the next run in line for its key. */
      readonly handOver: boolean;
    }
  /** Outcomes of several claims in one call. */
  | { readonly what: "commit together"; readonly pick: number; readonly outcomes: readonly OutcomeIntent[] }
  /** An outcome that was sent before, of a claim that may be gone, or at a turn that is not its own. */
  | { readonly what: "send again"; readonly pick: number }
  | {
      readonly what: "commit late";
      readonly pick: number;
      readonly turn: number;
      readonly outcome: OutcomeIntent;
    }
  | { readonly what: "signal"; readonly signals: readonly SignalIntent[] }
  | { readonly what: "cancel"; readonly pick: number; readonly cascade: boolean }
  | { readonly what: "release"; readonly pick: number }
  | { readonly what: "register" | "lapse" | "beat"; readonly worker: string }
  | { readonly what: "reap" | "sweep" | "repair" }
  | { readonly what: "advance"; readonly ms: number };

/** The literal itself as the type, so that it tells the intents apart. */
const one = <const T>(value: T): fc.Arbitrary<T> => fc.constant(value);

const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>): fc.WeightedArbitrary<T> => ({
  weight,
  arbitrary,
});

const pick = fc.nat(12);
const worker = fc.constantFrom("a", "b");
const queue = fc.constantFrom("default", "default", "default", "other");
const key = fc.constantFrom("k", "k", "k", "l");
const step = fc.constantFrom("one", "two");
/** The last is served by nobody. */
const definition = fc.constantFrom("counter", "counter", "second", "ghost");
const name = fc.constantFrom("pay", "ship");
const delayMs = fc.constantFrom(0, 0, 100, 1000);
const priority = fc.constantFrom(0, 1, -1);

/** Few values, so that one often contains the other. */
const json: fc.Arbitrary<Json> = fc.letrec<{ json: Json; leaf: Json }>((tie) => ({
  leaf: fc.constantFrom<Json[]>(1, "a", true),
  json: fc.oneof(
    { maxDepth: 2 },
    tie("leaf"),
    fc.dictionary(fc.constantFrom("x", "y"), tie("json"), { maxKeys: 2, noNullPrototype: true }),
    fc.array(tie("json"), { maxLength: 2 }),
  ),
})).json;
const object = fc.dictionary(fc.constantFrom("x", "y"), json, { maxKeys: 2, noNullPrototype: true });
const payload = fc.oneof(fc.constantFrom<Json[]>({}, { x: 1 }, { x: 1, y: [1, "a"] }), object, json);

const newRun: fc.Arbitrary<NewRun> = fc.record(
  {
    name: definition,
    queue,
    priority,
    partitionKey: key,
    delayMs,
    retentionMs: fc.constantFrom(0, 1000),
    step,
  },
  { requiredKeys: [] },
);

const outcome: fc.Arbitrary<OutcomeIntent> = fc.oneof(
  weighted(2, fc.record({ kind: one("keep"), step })),
  fc.record(
    { kind: one("next"), step, priority, partitionKey: fc.option(key) },
    { requiredKeys: ["kind", "step"] },
  ),
  fc.record({ kind: one("retry"), delayMs }),
  weighted(
    3,
    fc.record(
      {
        kind: one("await"),
        names: fc.uniqueArray(name, { minLength: 1 }),
        step,
        timeoutMs: delayMs,
        match: payload,
      },
      { requiredKeys: ["kind", "names", "step"] },
    ),
  ),
  weighted(2, fc.record({ kind: one("spawn"), step, children: fc.array(newRun, { maxLength: 2 }) })),
  weighted(3, fc.record({ kind: one("done") })),
  fc.record({ kind: one("stop") }),
);

const severalOutcomes = fc.array(outcome, { minLength: 2, maxLength: 4 });

const rarely = fc.nat(7).map((n) => n === 7);

const signal: fc.Arbitrary<SignalIntent> = fc.record(
  { pick, name, payload, dedupKey: fc.constantFrom("d", "e") },
  { requiredKeys: ["pick", "name", "payload"] },
);

const signals = fc.oneof(
  signal.map((only) => [only]),
  fc.array(signal, { minLength: 2, maxLength: 3 }),
);

const intent: fc.Arbitrary<Intent> = fc.oneof(
  weighted(9, fc.record({ what: one("start"), run: newRun, isDirect: rarely, worker })),
  weighted(7, fc.record({ what: one("claim"), worker, queue, limit: fc.integer({ min: 1, max: 4 }) })),
  weighted(44, fc.record({ what: one("commit"), pick, outcome, handOver: fc.boolean() })),
  weighted(2, fc.record({ what: one("commit together"), pick, outcomes: severalOutcomes })),
  weighted(2, fc.record({ what: one("send again"), pick })),
  weighted(2, fc.record({ what: one("commit late"), pick, turn: fc.nat(2), outcome })),
  weighted(12, fc.record({ what: one("signal"), signals })),
  weighted(2, fc.record({ what: one("cancel"), pick, cascade: fc.boolean() })),
  weighted(2, fc.record({ what: one("release"), pick })),
  weighted(9, fc.record({ what: fc.constantFrom("lapse", "lapse", "register", "beat"), worker })),
  weighted(5, fc.record({ what: fc.constantFrom("reap", "sweep", "repair") })),
  weighted(4, fc.record({ what: one("advance"), ms: fc.constantFrom(50, 100, 1000, 61_000) })),
);

export const intents: fc.Arbitrary<Intent[]> = fc.array(intent, {
  minLength: 1,
  maxLength: 40,
  size: "max",
});
