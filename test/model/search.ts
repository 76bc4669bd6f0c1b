/**
 * Breadth-first search over the states of a scenario. It visits every state that any interleaving can reach, once,
 * and stops at the first broken law, so the trace it reports is a shortest one. If no law is broken it checks that
 * no state is stuck: from each of them some path of expected steps ends all runs. Called by the model's test.
 */

import { broken } from "./laws.js";
import type { Mutant } from "./mutants.js";
import { firstState, isFinished, successors } from "./protocol.js";
import type { Database, Scenario, State } from "./rows.js";

export interface Found {
  readonly states: number;
  /** Which answers its calls were given, as "operation: answer". */
  readonly answers: ReadonlySet<string>;
  /** The broken law and how it came to that, or null. */
  readonly counterexample: { readonly law: string; readonly trace: readonly string[] } | null;
}

/** A bound against scenarios that grow by mistake, not a way to search only some of the states. */
const maxStates = 400_000;

export const search = (scenario: Scenario, mutant: Mutant | null = null): Found => {
  const first = firstState(scenario);
  const states: State[] = [first];
  const parents: number[] = [-1];
  const labels: string[] = [""];
  const describe = describer();
  const numbers = new Map<string, number>([[describe(first), 0]]);
  /** For each state the states from which an expected step leads there. */
  const sources: number[][] = [[]];

  const answers = new Set<string>();

  const trace = (from: number, last: readonly string[]): string[] => {
    const lines = [...last];
    for (let number = from; number > 0; number = parents[number]!) {
      lines.unshift(labels[number]!);
    }
    return lines.map((line, i) => `${i + 1}. ${line}`);
  };

  for (let number = 0; number < states.length; number++) {
    for (const successor of successors(states[number]!, scenario, mutant)) {
      const law = broken(states[number]!, successor, scenario);
      if (law !== null) {
        return {
          states: states.length,
          answers,
          counterexample: { law, trace: trace(number, [successor.label()]) },
        };
      }
      if (successor.answer !== null) {
        answers.add(successor.answer);
      }
      const key = describe(successor.state);
      let target = numbers.get(key);
      if (target === undefined) {
        target = states.length;
        if (target === maxStates) {
          throw new Error(`${scenario.name}: more than ${maxStates} states`);
        }
        numbers.set(key, target);
        states.push(successor.state);
        parents.push(number);
        labels.push(successor.label());
        sources.push([]);
      }
      if (successor.isExpected) {
        sources[target]!.push(number);
      }
    }
  }
  const stuck = firstStuck(states, sources);
  return {
    states: states.length,
    answers,
    counterexample: stuck === null ? null : { law: "a run is stuck", trace: trace(stuck, []) },
  };
};

/** The first state from which no path of expected steps leads to an end. */
const firstStuck = (states: readonly State[], sources: readonly (readonly number[])[]): number | null => {
  const ends: boolean[] = states.map(isFinished);
  const open = ends.flatMap((isEnd, number) => (isEnd ? [number] : []));
  for (let number = open.pop(); number !== undefined; number = open.pop()) {
    for (const source of sources[number]!) {
      if (!ends[source]) {
        ends[source] = true;
        open.push(source);
      }
    }
  }
  const stuck = ends.indexOf(false);
  return stuck < 0 ? null : stuck;
};

/** Numbers for parts of states, equal for equal parts. States share most of their parts, so this is cheap. */
const partNumbers = (): ((part: object) => number) => {
  const byText = new Map<string, number>();
  const byPart = new Map<object, number>();
  return (part) => {
    let number = byPart.get(part);
    if (number === undefined) {
      const text = JSON.stringify(part);
      number = byText.get(text) ?? byText.size;
      byText.set(text, number);
      byPart.set(part, number);
    }
    return number;
  };
};

/** A text that is equal for equal states. In which order calls began makes no difference. */
const describer = (): ((state: State) => string) => {
  const numberOf = partNumbers();
  const rows = ({ runs, signals, workers }: Database): string =>
    [...runs.map((row) => (row === null ? "" : numberOf(row))), numberOf(signals), numberOf(workers)].join(
      " ",
    );
  return (state) =>
    [
      rows(state.committed),
      state.flushed === null ? "" : rows(state.flushed),
      state.workers.map(numberOf).join(" "),
      numberOf(state.senders),
      numberOf(state.cancels),
      numberOf(state.budget),
      state.transactions.map(numberOf).toSorted().join(" "),
    ].join("|");
};
