/**
 * Notices a forgotten `await` in a workflow, and tells its author, once and not in production: the body has returned while the function of a
 * step was running that nobody looked at. Whoever chains on a step, as a race does, may mean to leave it. Used by the body and by `workflow.ts`.
 */

import type { WorkflowDefinition } from "../define/definition.js";
import type { Execution } from "./execution.js";
import type { Surroundings } from "./surroundings.js";

const isDevelopment = process.env["NODE_ENV"] !== "production";

/** Definitions whose author has been told. */
const warned = new WeakSet<WorkflowDefinition>();

/** The steps that somebody has chained on. */
export class Chained {
  readonly #names = new Set<unknown>();

  /** Notes it when somebody chains on this promise. An `await` does not: it looks at a promise without calling `then`. */
  observe(name: unknown, promise: Promise<unknown>): Promise<unknown> {
    if (!isDevelopment) return promise;
    const then: typeof promise.then = (...handlers) => {
      this.#names.add(name);
      return Promise.prototype.then.apply(promise, handlers) as never;
    };
    // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
    return Object.assign(promise, { then });
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }
}

export function warnOfForgotten(
  { runId }: Execution,
  definition: WorkflowDefinition,
  [step]: readonly string[],
  { logger }: Surroundings,
): void {
  if (!isDevelopment || step === undefined || warned.has(definition)) return;
  warned.add(definition);
  const { name, version } = definition;
  logger.warn(
    { runId, name, version, step },
    `pawl: a workflow has returned while step "${step}" was running, and its outcome is not recorded: is an "await" missing?`,
  );
}
