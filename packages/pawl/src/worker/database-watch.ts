/**
 * What a worker knows of its database as a whole: whether it is a copy of the one that was
 * migrated, whether it is held, so that no work may be done in it, and whether somebody migrated it
 * to a version that this release cannot use. It warns once of each. Owned by the worker, which asks
 * when it registers and is told with every heartbeat. The server and `pawl doctor` use the same
 * warnings.
 */

import type { Logger } from "../values/logger.js";
import type { WorkerTransport } from "./transport.js";

export const copyWarning =
  "pawl: this database is a copy (a fork, or a restored backup): it was migrated elsewhere. Runs that are executed here may " +
  "repeat effects of the original. If this is now the database to work with, run `pawl fork adopt`; " +
  "if not, stop this worker, or run `pawl hold`";

export const heldWarning =
  "pawl: this database is held: no run is executed. Runs and signals are accepted and wait until `pawl fork adopt` or " +
  "`pawl hold --release`";

export class DatabaseWatch {
  readonly #logger: Logger;
  readonly #onReleased: () => void;
  #isHeld = false;
  #hasWarnedOfCopy = false;
  #schemaProblem: string | null = null;

  constructor(logger: Logger, onReleased: () => void) {
    this.#logger = logger;
    this.#onReleased = onReleased;
  }

  /** The whole database is held: the store gives no claims, and no further step begins. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** This release cannot work with the schema: no run is claimed. */
  get isTooNew(): boolean {
    return this.#schemaProblem !== null;
  }

  /** Asks whether this is the database that was migrated, and whether it is held. */
  async check(transport: WorkerTransport, workerId: string): Promise<void> {
    const state = await transport.state?.();
    if (state === undefined) return;
    if (state.isCopy && !this.#hasWarnedOfCopy) this.#logger.warn({ identity: state.identity }, copyWarning);
    this.#hasWarnedOfCopy ||= state.isCopy;
    this.setHeld(state.isHeld, workerId);
  }

  setSchemaProblem(problem: string | null, workerId: string): void {
    if (problem === this.#schemaProblem) return;
    this.#schemaProblem = problem;
    if (problem !== null) {
      this.#logger.error({ workerId }, `pawl: the worker claims no more runs: ${problem}`);
      return;
    }
    this.#logger.info({ workerId }, "pawl: the schema fits this release again, work goes on");
    this.#onReleased();
  }

  setHeld(isHeld: boolean, workerId: string): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) {
      this.#logger.warn({ workerId }, heldWarning);
      return;
    }
    this.#logger.info({ workerId }, "pawl: the database is no longer held, work goes on");
    this.#onReleased();
  }
}
