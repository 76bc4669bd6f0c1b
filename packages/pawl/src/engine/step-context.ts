/**
 * The `ctx` objects that user code sees. Cheap to make, one per step: the helpers are on the prototype and use no
 * `this`; the abort signal, the logger, signals and children are made when they are first asked for.
 */

import type { JobContext, StepContext } from "../define/context.js";
import type { WorkflowContext } from "../define/workflow-context.js";
import type { Logger, LogMethod } from "../define/logger.js";
import { stepHelpers } from "../define/outcome.js";
import type { Execution } from "./execution.js";
import type { Incoming } from "./incoming.js";

class RunContext {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly attempt: number;
  readonly #execution: Execution;
  readonly #logger: Logger;
  #log: Logger | undefined;

  constructor(execution: Execution, logger: Logger) {
    this.runId = execution.runId;
    this.name = execution.definition.name;
    this.version = execution.definition.version;
    this.attempt = execution.attempt;
    this.#execution = execution;
    this.#logger = logger;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  get log(): Logger {
    const { runId, name, attempt } = this;
    const { step } = this.#execution;
    return (this.#log ??= bind(this.#logger, { runId, name, attempt, ...(step === null ? {} : { step }) }));
  }
}

class MachineStepContext extends RunContext {
  readonly step: string;
  readonly state: unknown;
  readonly timedOut: boolean;
  readonly #incoming: Incoming;
  #awaited: StepContext["awaited"] | undefined;
  #inbox: StepContext["inbox"] | undefined;
  #children: StepContext["children"] | undefined;

  constructor(execution: Execution, logger: Logger, step: string, state: unknown) {
    super(execution, logger);
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

  constructor(execution: Execution, logger: Logger, step: object) {
    super(execution, logger);
    this.step = step;
  }
}

/** The `ctx` of a workflow, with these steps. */
export function runContext(execution: Execution, logger: Logger, step: object): WorkflowContext {
  return new BodyContext(execution, logger, step) as unknown as WorkflowContext;
}

export function jobContext(execution: Execution, logger: Logger): JobContext {
  return new RunContext(execution, logger);
}

export function stepContext(execution: Execution, logger: Logger, step: string, state: unknown): StepContext {
  return new MachineStepContext(execution, logger, step, state) as unknown as StepContext;
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
