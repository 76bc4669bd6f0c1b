/**
 * The `ctx` objects that user code sees, and the call of that code. A context is cheap to make, one
 * per step: the helpers are on the prototype and use no `this`; the abort signal, the logger,
 * signals and children are made when the code first asks for them.
 */

import type { JobContext, StepContext } from "../define/context.js";
import { stepHelpers } from "../define/outcome.js";
import type { Tags } from "../define/start-options.js";
import { readScheduleKey, type ScheduleTick } from "../define/schedule-key.js";
import type { WorkflowContext, WorkflowSteps } from "../define/workflow-context.js";
import { isThenable, withinTime } from "../timing/deadline.js";
import type { Logger, LogMethod } from "../values/logger.js";
import type { Execution } from "./execution.js";

const noTags: Tags = Object.freeze({});

class RunContext {
  readonly runId: string;
  readonly originRunId: string;
  readonly name: string;
  readonly version: number;
  readonly attempt: number;
  readonly #execution: Execution;
  #log: Logger | undefined;

  constructor(execution: Execution) {
    this.runId = execution.runId;
    this.originRunId = execution.claim.run.extra?.originId ?? execution.runId;
    this.name = execution.definition.name;
    this.version = execution.definition.version;
    this.attempt = execution.progress.attempt;
    this.#execution = execution;
  }

  get tags(): Tags {
    return this.#execution.claim.run.extra?.tags ?? noTags;
  }

  get schedule(): ScheduleTick | null {
    return readScheduleKey(this.#execution.claim.run.extra?.schedule ?? null);
  }

  get signal(): AbortSignal {
    return this.#execution.control.signal;
  }

  get log(): Logger {
    const { runId, name, attempt } = this;
    const { progress, services } = this.#execution;
    const { step } = progress;
    return (this.#log ??= bindLogger(services.logger, {
      runId,
      name,
      attempt,
      ...(step === null ? {} : { step }),
    }));
  }
}

class JobRunContext extends RunContext implements JobContext {
  readonly #execution: Execution;
  readonly #turn: number;
  readonly #isInterrupted: boolean;

  constructor(execution: Execution) {
    super(execution);
    this.#execution = execution;
    this.#turn = execution.progress.turn;
    this.#isInterrupted = execution.control.isInterrupted;
  }

  get transaction(): JobContext["transaction"] {
    const { progress, control, transaction } = this.#execution;
    return (work) => {
      if (progress.turn !== this.#turn || control.isInterrupted !== this.#isInterrupted) {
        return Promise.reject(new Error("the step is over, so it cannot open a transaction"));
      }
      return transaction.run(work);
    };
  }
}

class MachineStepContext extends JobRunContext implements StepContext {
  readonly step: string;
  readonly state: unknown;
  readonly timedOut: boolean;
  readonly #execution: Execution;
  #awaited: StepContext["awaited"] | undefined;
  #inbox: StepContext["inbox"] | undefined;
  #children: StepContext["children"] | undefined;

  constructor(execution: Execution, step: string, state: unknown) {
    super(execution);
    this.step = step;
    this.state = state;
    this.timedOut = execution.progress.inbox.timedOut;
    this.#execution = execution;
  }

  get awaited(): StepContext["awaited"] {
    return (this.#awaited ??= this.#execution.progress.inbox.awaited());
  }

  get inbox(): StepContext["inbox"] {
    return (this.#inbox ??= this.#execution.progress.inbox.signals());
  }

  get children(): StepContext["children"] {
    return (this.#children ??= this.#execution.progress.inbox.children());
  }

  get next(): StepContext["next"] {
    return stepHelpers.next;
  }

  get retry(): StepContext["retry"] {
    return stepHelpers.retry;
  }

  get awaitSignal(): StepContext["awaitSignal"] {
    return stepHelpers.awaitSignal;
  }

  get spawn(): StepContext["spawn"] {
    return stepHelpers.spawn;
  }

  get done(): StepContext["done"] {
    return stepHelpers.done;
  }

  get stop(): StepContext["stop"] {
    return stepHelpers.stop;
  }
}

class BodyContext extends RunContext implements WorkflowContext {
  readonly step: WorkflowSteps;

  constructor(execution: Execution, step: WorkflowSteps) {
    super(execution);
    this.step = step;
  }
}

/** The `ctx` of a workflow, with these steps. */
export function workflowContext(execution: Execution, step: WorkflowSteps): WorkflowContext {
  return new BodyContext(execution, step);
}

export function jobContext(execution: Execution): JobContext {
  return new JobRunContext(execution);
}

export function stepContext(execution: Execution, step: string, state: unknown): StepContext {
  return new MachineStepContext(execution, step, state);
}

/**
 * Calls the code of a job or of a machine's step inside the span of the step. Answers the returned
 * value, or a promise of it, which rejects with `StepTimeout` after `maxStepDuration`.
 */
export function callCode({ observed, control, services }: Execution, code: () => unknown): unknown {
  const { stepSpan } = observed;
  const returned = stepSpan === null ? code() : stepSpan.call(code);
  if (!isThenable(returned)) return returned;
  const promised = withinTime(returned, services.limits.maxStepMs, (late) => control.interrupt(late));
  return promised instanceof Promise ? promised : Promise.resolve(promised);
}

/** A logger that adds these details to every line. */
export function bindLogger(logger: Logger, bindings: object): Logger {
  const method =
    (level: keyof Logger): LogMethod =>
    (given: object | string, message?: string) => {
      if (typeof given === "string") logger[level](bindings, given);
      else logger[level]({ ...bindings, ...given }, message);
    };
  return { debug: method("debug"), info: method("info"), warn: method("warn"), error: method("error") };
}
