import { describe, expect, it } from "vitest";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./rows.js";
import { scenarios } from "./scenarios.js";
import { search } from "./search.js";

describe("no interleaving breaks a law", () => {
  const answers = new Set<string>();
  let states = 0;

  for (const scenario of scenarios) {
    it(`with ${scenario.name}`, () => {
      const found = search(scenario);
      console.info(`${scenario.name}: ${found.states} states`);
      expect(found.counterexample).toBeNull();
      states += found.states;
      found.answers.forEach((answer) => answers.add(answer));
    });
  }

  it("the scenarios reach at least 50,000 states and every answer that an operation can give", () => {
    console.info(`all scenarios: ${states} states`);
    expect(states).toBeGreaterThanOrEqual(50_000);
    expect([...answers].toSorted()).toEqual([
      "beat: alive",
      "beat: lapsed",
      "cancel: cancelled",
      "cancel: ended",
      "claim: claimed",
      "claim: nothing",
      "commit: already",
      "commit: committed",
      "commit: stale",
      "reap: reaped",
      "release: released",
      "repair: repaired",
      "signal: accepted",
      "signal: refused",
      "sweep: swept",
    ]);
  });
});

/** For each mutant what goes wrong, the scenario that shows it, and the law that it breaks. */
const caught: { readonly [M in Mutant]: readonly [says: string, scenario: string, law: RegExp] } = {
  "guard by a counter": [
    "a claim named by a counter lets a stale worker commit after a crash of the database",
    "a crash of the database that loses claims",
    /^a stale worker commits/,
  ],
  "claim without a recheck": [
    "a claim that does not look again under the lock takes an executing run",
    "signals to a run that awaits them",
    /^run 1 is claimed though it is executing$/,
  ],
  "park without a recheck": [
    "an await that trusts the inbox loaded by its claim parks over a match",
    "signals to a run that awaits them",
    /^run 1 is parked while its inbox holds a match/,
  ],
  "park decides while locking": [
    "an await decided by the snapshot of its locking statement parks over a match",
    "signals to a run that awaits them",
    /^run 1 is parked while its inbox holds a match/,
  ],
  "status-filtered wake": [
    "a signal that wakes by a status filter misses a run that parks at the same instant",
    "signals to a run that awaits them",
    /^run 1 is parked while its inbox holds a match/,
  ],
  "guard without a turn": [
    "a guard without a turn applies an outcome twice",
    "a zombie that sends its outcomes twice",
    /^an outcome of run 1 is applied twice$/,
  ],
  "cancel clears the holder": [
    "a cancel that takes the holder away lets two runs of a key execute at once",
    "two runs of one key, a deadline, a signal, a cancel and the repair pass",
    /^code of two runs of one key runs at the same time$/,
  ],
  "un-hold without the key's lock": [
    "a key freed without its lock leaves a sibling blocked that is being blocked at the same instant",
    "three runs of one key",
    /^a run is stuck$/,
  ],
  "no un-hold": [
    "a freed key that lets nobody in leaves its siblings blocked",
    "three runs of one key",
    /^a run is stuck$/,
  ],
  "skip locked decides the order in a key": [
    "a claim that passes over a locked sibling breaks the order in a key",
    "three runs of one key",
    /^run 2 is claimed before run 1 of the same key/,
  ],
  "claim without the key's lock": [
    "a claim that blocks a run without the key's lock blocks it for good",
    "three runs of one key",
    /^a run is stuck$/,
  ],
  "reap ignores a beat in flight": [
    "a reaper that does not lock the worker it judges takes runs from a living one",
    "beats, crashes of workers and a cancel",
    /^run 1 is taken from a worker whose lease runs$/,
  ],
  "reap forgets holders without a row": [
    "a claim that commits after its worker's row is gone is stuck unless such holders are reaped too",
    "two runs of one key whose worker loses its lease",
    /^a run is stuck$/,
  ],
  "consume what matches": [
    "a step that consumes all that matches consumes what it was not shown",
    "signals to a run that awaits them",
    /^run 1 consumes signals \[0,1\] though it was shown \[0\]$/,
  ],
  "a shown signal wakes again": [
    "a renewed await that ignores what it has shown never sleeps",
    "deadlines, signals and a cancel",
    /^run 1 is woken by what it was shown already$/,
  ],
  "timeout decided by the page": [
    "a timeout decided before the lock wins over a match that came first",
    "deadlines, signals and a cancel",
    /^run 1 times out though a match had arrived before$/,
  ],
  "every claim loads the inbox anew": [
    "a claim that loads the inbox anew shows a timeout together with a signal that came after it",
    "a deadline and a signal while the worker may lose its lease or stop",
    /^a step of run 1 sees a timeout and signal 1, which it was not shown before$/,
  ],
  "signal commits asynchronously": [
    "a signal accepted before it is on disk is lost in a crash of the database",
    "a crash of the database that loses claims",
    /^signal 1 was accepted and is lost$/,
  ],
};

const scenarioOf = (name: string): Scenario => scenarios.find((scenario) => scenario.name === name)!;

describe("each rule is needed", () => {
  for (const [mutant, [says, name, law]] of Object.entries(caught)) {
    it(says, () => {
      const { counterexample } = search(scenarioOf(name), mutant as Mutant);
      expect(counterexample?.law).toMatch(law);
      expect(counterexample?.trace.length).toBeGreaterThan(0);
    });
  }

  it("a counterexample reads as the shortest list of steps that leads to it", () => {
    const scenario = scenarioOf("a crash of the database that loses claims");
    expect(search(scenario, "guard by a counter").counterexample?.trace).toMatchInlineSnapshot(`
      [
        "1. worker A: claim: look",
        "2. worker A: claim of run 1: lock",
        "3. worker A: claim of run 1: take → claimed",
        "4. the database crashes",
        "5. worker A: commit of await for run 1 (claim 1, turn 0): send",
        "6. worker B: claim: look",
        "7. worker B: claim of run 1: lock",
        "8. worker B: claim of run 1: take → claimed",
        "9. worker A: commit of await for run 1 (claim 1, turn 0): lock",
        "10. worker A: commit of await for run 1 (claim 1, turn 0): decide → committed",
      ]
    `);
  });
});
