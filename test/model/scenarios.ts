/**
 * The situations that the search explores: a few runs with small bodies, a few signals, two workers, and how much may
 * go wrong. Small enough to be searched to the end, each aimed at one part of the protocol. Used by the model's test.
 */

import type { Body, Budget, Outcome, Scenario } from "./rows.js";

const nothingHappens: Budget = {
  workerCrashes: 0,
  lapses: 0,
  beats: 0,
  resends: 0,
  stops: 0,
  databaseCrashes: 0,
};

const scenario = (
  given: Pick<Scenario, "name" | "runs"> &
    Partial<Omit<Scenario, "name" | "runs" | "budget">> & { budget?: Partial<Budget> },
): Scenario => ({
  workers: 2,
  senders: [],
  cancels: [],
  hasRepair: false,
  hasSweep: false,
  ...given,
  budget: { ...nothingHappens, ...given.budget },
});

const done: Outcome = { kind: "done" };
const awaiting = (name: string, step: number, hasTimeout = false): Outcome => ({
  kind: "await",
  name,
  step,
  hasTimeout,
});

const doneAtOnce: Body = () => done;
/** Two steps on one claim, then the end. */
const keepKeepDone: Body = (step) => (step < 2 ? { kind: "keep", step: step + 1 } : done);
/** Lets the claim go in between. */
const nextDone: Body = (step) => (step === 0 ? { kind: "next", step: 1 } : done);
/** Awaits "pay", goes on, ends. */
const awaitPay: Body = (step) =>
  step === 0 ? awaiting("pay", 1) : step === 1 ? { kind: "keep", step: 2 } : done;
/** Awaits "pay" until two have come, consumes them, ends. */
const gather: Body = (step, awaited) =>
  step === 0 || (step === 1 && awaited < 2)
    ? awaiting("pay", 1)
    : step === 1
      ? { kind: "next", step: 2 }
      : done;
/** Awaits "pay" with a deadline; after one that came in time it awaits another one. */
const awaitUntil: Body = (step, awaited, timedOut) =>
  step === 0 || (awaited === 1 && !timedOut) ? awaiting("pay", 1, true) : done;

export const scenarios: readonly Scenario[] = [
  scenario({
    name: "signals to a run that awaits them",
    runs: [{ key: null, body: awaitPay }],
    senders: [
      { run: 0, name: "pay" },
      { run: 0, name: "pay" },
      { run: 0, name: "other" },
    ],
    budget: { resends: 1 },
  }),
  scenario({
    name: "a run that gathers signals while its worker may lose its lease",
    runs: [{ key: null, body: gather }],
    senders: [
      { run: 0, name: "pay" },
      { run: 0, name: "pay" },
    ],
    budget: { lapses: 1 },
  }),
  scenario({
    name: "deadlines, signals and a cancel",
    runs: [{ key: null, body: awaitUntil }],
    senders: [
      { run: 0, name: "pay" },
      { run: 0, name: "pay" },
    ],
    cancels: [0],
    hasSweep: true,
  }),
  scenario({
    name: "a deadline and a signal while the worker may lose its lease or stop",
    runs: [{ key: null, body: awaitUntil }],
    senders: [{ run: 0, name: "pay" }],
    budget: { lapses: 1, stops: 1 },
  }),
  scenario({
    name: "a zombie that sends its outcomes twice",
    runs: [{ key: null, body: keepKeepDone }],
    budget: { lapses: 1, resends: 1 },
  }),
  scenario({
    name: "beats, crashes of workers and a cancel",
    runs: [{ key: null, body: nextDone }],
    cancels: [0],
    budget: { lapses: 1, beats: 1, workerCrashes: 1 },
    hasSweep: true,
  }),
  scenario({
    name: "a crash of the database that loses claims",
    runs: [{ key: null, body: awaitPay }],
    senders: [{ run: 0, name: "pay" }],
    budget: { databaseCrashes: 1, resends: 1 },
  }),
  scenario({
    name: "three runs of one key",
    runs: [
      { key: "k", body: nextDone },
      { key: "k", body: doneAtOnce },
      { key: "k", body: doneAtOnce },
    ],
  }),
  scenario({
    name: "two runs of one key, a deadline, a signal, a cancel and the repair pass",
    runs: [
      { key: "k", body: awaitUntil },
      { key: "k", body: doneAtOnce },
    ],
    senders: [{ run: 0, name: "pay" }],
    cancels: [0],
    hasRepair: true,
  }),
  scenario({
    name: "two runs of one key whose worker loses its lease",
    runs: [
      { key: "k", body: doneAtOnce },
      { key: "k", body: doneAtOnce },
    ],
    cancels: [0],
    budget: { lapses: 1 },
    hasRepair: true,
  }),
  scenario({
    name: "two runs of one key and a crash of the database",
    runs: [
      { key: "k", body: doneAtOnce },
      { key: "k", body: doneAtOnce },
    ],
    budget: { databaseCrashes: 1, stops: 1 },
    hasRepair: true,
  }),
];
