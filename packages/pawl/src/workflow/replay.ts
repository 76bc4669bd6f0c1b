/**
 * Runs the body of a workflow against the journal of a run, as far as that goes, and calls no
 * function of any step. It shows what a changed body would do with an old run. Code between the
 * steps does run. Used by `pawl.check`.
 */

import { NondeterministicWorkflow } from "../values/errors.js";
import type { StepKind, StoredStep } from "../store/journal.js";
import { Deliveries } from "./deliveries.js";
import { newCall, settle, toError } from "./step-call.js";
import { StepNames } from "./step-names.js";
import { onNextTurn } from "../timing/next-turn.js";

const longestMs = 5_000;
const quietMs = 250;

export type Replayed =
  /**
   * It reached steps that are not recorded, or its end. `uncalled` are recorded steps that it did
   * not call.
   */
  | { readonly kind: "followed"; readonly uncalled: readonly string[] }
  | { readonly kind: "threw"; readonly error: unknown }
  /** Between its steps it waits for something that did not happen. */
  | { readonly kind: "stalled" };

type Step = (kind: StepKind, name: unknown) => Promise<unknown>;

/** Calls the body with steps that are answered from the journal. */
export function replay(journal: readonly StoredStep[], call: (step: Step) => unknown): Promise<Replayed> {
  return new Promise((resolve) => {
    const names = new StepNames(journal);
    const deliveries = new Deliveries(() => consider());
    /** Calls without a record. */
    let open = 0;
    let doings = 0;
    let isOver = false;
    const end = (replayed: Replayed): void => {
      isOver = true;
      deliveries.clear();
      clearTimeout(timer);
      resolve(replayed);
    };
    const timer = setTimeout(() => end({ kind: "stalled" }), longestMs);
    const consider = (isPatient = false): void => {
      const before = doings;
      onNextTurn(() => {
        if (isOver || !deliveries.isIdle || open === 0) return;
        if (before !== doings) {
          consider();
          return;
        }
        const uncalled = names.uncalled();
        if (uncalled.length === 0 || isPatient) end({ kind: "followed", uncalled });
        // Another branch may be waiting for something between its steps.
        else setTimeout(() => consider(before === doings), quietMs);
      });
    };
    const step: Step = (kind, given) => {
      if (isOver) return new Promise(() => {});
      const promise = new Promise<unknown>((fulfil, reject) => {
        let taken: ReturnType<StepNames["take"]>;
        try {
          taken = names.take(kind, given);
        } catch (error) {
          // The run would end here, even if the body caught the error.
          if (error instanceof NondeterministicWorkflow) end({ kind: "threw", error });
          throw error;
        }
        const { name, recorded } = taken;
        doings++;
        if (recorded === undefined || recorded.seq === null) {
          open++;
          consider();
          return;
        }
        const called = newCall(kind, name, fulfil, reject);
        const { output } = recorded;
        const error = recorded.error === null ? null : toError(called, recorded.error);
        deliveries.add(recorded.seq, () => settle(called, output, error));
      });
      promise.catch(() => {});
      return promise;
    };
    void (async () => {
      try {
        await call(step);
        if (!isOver) end({ kind: "followed", uncalled: names.uncalled() });
      } catch (error) {
        if (!isOver) end({ kind: "threw", error });
      }
    })();
  });
}
