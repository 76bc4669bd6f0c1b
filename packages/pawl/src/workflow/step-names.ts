/**
 * The names of the steps that a body has called: each only once, and as the kind that is recorded.
 * Used by the body and by `replay.ts`.
 */

import { InvalidOption, NondeterministicWorkflow } from "../values/errors.js";
import { checkStepName } from "../values/names.js";
import type { StepKind, StoredStep } from "../store/journal.js";

const verbs: Record<StepKind, string> = {
  run: "step.run",
  sleep: "step.sleep",
  wait: "step.waitForEvent",
  invoke: "step.invoke",
  transaction: "step.transaction",
};

export class StepNames {
  readonly #journal: ReadonlyMap<string, StoredStep>;
  readonly #called = new Set<string>();

  constructor(journal: readonly StoredStep[]) {
    this.#journal = new Map(journal.map((step) => [step.name, step]));
  }

  /**
   * A call of a step: its name and its record. Throws if the name was used before, or as another
   * kind.
   */
  take(kind: StepKind, given: unknown): { name: string; recorded: StoredStep | undefined } {
    const name = checkStepName(given);
    if (this.#called.has(name)) throw calledTwice(name);
    this.#called.add(name);
    const recorded = this.#journal.get(name);
    if (recorded !== undefined && recorded.kind !== kind) throw changedKind(name, recorded.kind, kind);
    return { name, recorded };
  }

  /** The recorded steps that were never called. */
  uncalled(): string[] {
    return [...this.#journal.keys()].filter((name) => !this.#called.has(name));
  }
}

function calledTwice(name: string): InvalidOption {
  return new InvalidOption(
    `step "${name}" was called before in this run: each name may be used once. In a loop, put the index into it, ` +
      `such as \`${name}-\${index}\``,
  );
}

function changedKind(name: string, recorded: StepKind, called: StepKind): NondeterministicWorkflow {
  return new NondeterministicWorkflow(
    `step "${name}" is recorded as ${verbs[recorded]}, but the body calls it as ${verbs[called]}: the code was changed ` +
      "while this run was under way, or depends on chance or the time. Give the changed step another name, or the workflow a new version",
  );
}
