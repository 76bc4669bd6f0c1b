/**
 * `runs.rerun`: its options, and the errors of a run that cannot be repeated. Pure. Used by the
 * client.
 */

import type { RerunAnswer, RerunRequest } from "../store/client-store.js";
import { checkFreeKey } from "../define/schedule-key.js";
import { InvalidOption, KeyConflict, RunActive } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkStepName, checkVersion } from "../values/names.js";
import { checkOptions, checkString, suggest } from "../values/options.js";
import { notFound } from "../values/run-id.js";
import { show } from "../values/show.js";

export interface RerunOptions {
  /**
   * The step to begin with: recorded steps before it keep their outcomes, later ones run again.
   * `"start"` begins anew and keeps nothing. Default: where the run failed; a completed run begins
   * anew.
   */
  readonly from?: string | undefined;
  /** Another input, for a job, a workflow, or a machine that begins anew. */
  readonly input?: unknown;
  /** Another state, for a machine. */
  readonly state?: unknown;
  /** Another version of the definition. Default: that of the run. */
  readonly version?: number | undefined;
  /**
   * The idempotency key of the new run: a second rerun of this run with the same key starts nothing
   * and returns the first one, with `created: false`. At most 512 bytes.
   */
  readonly idempotencyKey?: string | undefined;
}

/** The options that a bulk operation takes too. */
export const rerunOptions = ["from", "input", "state", "version"] as const;

export function checkRerun(
  options: unknown,
  maxBytes: number,
  what = "the options of runs.rerun",
): RerunRequest {
  const names = [...rerunOptions, "idempotencyKey"] as const;
  const { from, input, state, version, idempotencyKey: key } = checkOptions(options, names, what);
  return {
    from: from === undefined ? null : checkStepName(from),
    input: input === undefined ? null : toJson(input, "input", maxBytes).text,
    state: state === undefined ? null : toJson(state, "state", maxBytes).text,
    version: version === undefined ? null : checkVersion(version),
    idempotencyKey:
      key === undefined ? null : checkFreeKey(checkString(key, "idempotencyKey", { maxBytes: 512 })),
  };
}

/** The id of the new run. Throws if the run cannot be repeated so. */
export function toRerun(
  runId: string,
  request: RerunRequest,
  verdict: RerunAnswer,
): { runId: string; created: boolean } {
  if (verdict.kind === "rerun") return { runId: verdict.runId, created: verdict.created };
  throw refusal(runId, request, verdict);
}

function refusal(
  runId: string,
  { from, idempotencyKey }: RerunRequest,
  verdict: Exclude<RerunAnswer, { kind: "rerun" }>,
): Error {
  switch (verdict.kind) {
    case "not_found":
      return notFound(runId);
    case "active":
      return new RunActive(
        `run ${runId} has not ended, and only an ended run can be run again; cancel it first, or wait for its end`,
      );
    case "key_conflict":
      return new KeyConflict(
        `the idempotency key ${show(idempotencyKey)} belongs to run ${verdict.runId}, which is no rerun of run ${runId}: use another key`,
      );
    case "no_steps":
      return new InvalidOption(
        `from is ${show(from)}, but run ${runId} is a job, which has no steps: leave from out, or pass "start"`,
      );
    case "no_state":
      return new InvalidOption(`run ${runId} is not a machine, so it has no state: pass input instead`);
    case "no_input":
      return new InvalidOption(
        `run ${runId} is a machine, and only its first step reads the input: pass state, or from: "start"`,
      );
    case "unknown_step": {
      const { steps } = verdict;
      const known =
        steps.length === 0
          ? "it has no steps yet"
          : `its steps are ${steps.map((name) => show(name)).join(", ")}`;
      return new InvalidOption(
        `from is ${show(from)}, but the journal of run ${runId} has no such step: ${known}` +
          `${suggest(from ?? "", steps)}; "start" begins anew`,
      );
    }
    case "waited_for_children":
      return new InvalidOption(
        `run ${runId} was cancelled while it waited for its children, before step ${show(verdict.steps[0])}: ` +
          "pass from, the step to begin with, such as the step that spawns them",
      );
    case "signals_lost":
      return new InvalidOption(
        `step ${show(verdict.steps[0])} of run ${runId} had awaited more than 1 MiB of signals, which are not kept: ` +
          "pass from, the step to begin with, such as the step that awaits them",
      );
  }
}
