/**
 * The `ctx` objects that user code sees. Cheap to make, one per step: the helpers are on the prototype and use no
 * `this`; the abort signal, the logger, signals and children are made when they are first asked for.
 */

import type { JobContext, StepContext } from "../define/context.js";
import type { WorkflowContext } from "../define/workflow-context.js";
import type { Logger, LogMethod } from "../values/logger.js";
import { stepHelpers } from "../define/outcome.js";
import type { Transaction } from "../define/transaction.js";
import type { Execution } from "./execution.js";
import type { Incoming } from "./inbox.js";
import type { Surroundings } from "./worker-services.js";
import { openTransaction } from "./transaction.js";

class RunContext {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly attempt: number;
  readonly #execution: Execution;
  readonly #around: Surroundings;
  #log: Logger | undefined;

  constructor(execution: Execution, around: Surroundings) {
    this.runId = execution.runId;
    this.name = execution.definition.name;
    this.version = execution.definition.version;
    this.attempt = execution.attempt;
    this.#execution = execution;
    this.#around = around;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  get log(): Logger {
    const { runId, name, attempt } = this;
    const { step } = this.#execution;
    return (this.#log ??= bind(this.#around.logger, {
      runId,
      name,
      attempt,
      ...(step === null ? {} : { step }),
    }));
  }
}

/** What jobs and the steps of machines have, and workflows have as a step. */
class WorkContext extends RunContext {
  readonly #made: readonly [Execution, Surroundings];
  readonly #turn: number;
  readonly #interrupted: boolean;

  constructor(execution: Execution, around: Surroundings) {
    super(execution, around);
    this.#made = [execution, around];
    this.#turn = execution.turn;
    this.#interrupted = execution.interrupted;
  }

  get transaction(): (work: (tx: Transaction) => unknown) => Promise<unknown> {
    const [execution, around] = this.#made;
    return (work) => {
      if (execution.turn !== this.#turn || execution.interrupted !== this.#interrupted) {
        return Promise.reject(new Error("the step is over: it can open no transaction any more"));
      }
      return openTransaction(execution, around, work);
    };
  }
}

class MachineStepContext extends WorkContext {
  readonly step: string;
  readonly state: unknown;
  readonly timedOut: boolean;
  readonly #incoming: Incoming;
  #awaited: StepContext["awaited"] | undefined;
  #inbox: StepContext["inbox"] | undefined;
  #children: StepContext["children"] | undefined;

  constructor(execution: Execution, around: Surroundings, step: string, state: unknown) {
    super(execution, around);
    this.step = step;
    this.state = state;
    this.timedOut = execution.incoming.timedOut;
    this.#incoming = execution.incoming;
  }

  get awaited(): StepContext["awaited"] {
    return (this.#awaited ??= this.#incoming.awaited());
  }

  get inbox(): StepContext["inbox"] {
    return (this.#inbox ??= this.#incoming.inbox());
  }

  get children(): StepContext["children"] {
    return (this.#children ??= this.#incoming.children());
  }
}
Object.assign(MachineStepContext.prototype, stepHelpers);

class BodyContext extends RunContext {
  readonly step: object;

  constructor(execution: Execution, around: Surroundings, step: object) {
    super(execution, around);
    this.step = step;
  }
}

/** The `ctx` of a workflow, with these steps. */
export function bodyContext(execution: Execution, around: Surroundings, step: object): WorkflowContext {
  return new BodyContext(execution, around, step) as unknown as WorkflowContext;
}

export function jobContext(execution: Execution, around: Surroundings): JobContext {
  return new WorkContext(execution, around) as unknown as JobContext;
}

export function stepContext(
  execution: Execution,
  around: Surroundings,
  step: string,
  state: unknown,
): StepContext {
  return new MachineStepContext(execution, around, step, state) as unknown as StepContext;
}

/** A logger that adds these details to every line. */
function bind(logger: Logger, bindings: object): Logger {
  const method =
    (level: keyof Logger): LogMethod =>
    (given: object | string, message?: string) => {
      if (typeof given === "string") logger[level](bindings, given);
      else logger[level]({ ...bindings, ...given }, message);
    };
  return { debug: method("debug"), info: method("info"), warn: method("warn"), error: method("error") };
}
