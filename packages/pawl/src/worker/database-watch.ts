/**
 * What a worker knows of its database as a whole: whether that is a copy of the one that was migrated, and whether it is held, so that no
 * work may be done in it. Warns once of each. Owned by the worker, which looks when it registers and hears it at every heartbeat.
 */

import type { Logger } from "../values/logger.js";
import { copyWarning, heldWarning } from "./database-warnings.js";
import type { WorkerTransport } from "./transport.js";

export class DatabaseWatch {
  readonly #logger: Logger;
  readonly #onFreed: () => void;
  #isHeld = false;
  #toldOfCopy = false;

  constructor(logger: Logger, onFreed: () => void) {
    this.#logger = logger;
    this.#onFreed = onFreed;
  }

  /** The whole database is held: the store gives no claims, and steps that are done are followed by none. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Is this the database that it was when it was migrated, and may work be done in it? */
  async look(transport: WorkerTransport, workerId: string): Promise<void> {
    const state = await transport.state?.();
    if (state === undefined) return;
    if (state.isCopy && !this.#toldOfCopy) this.#logger.warn({ identity: state.identity }, copyWarning);
    this.#toldOfCopy ||= state.isCopy;
    this.hear(state.isHeld, workerId);
  }

  hear(isHeld: boolean, workerId: string): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) {
      this.#logger.warn({ workerId }, heldWarning);
      return;
    }
    this.#logger.info({ workerId }, "pawl: the database is not held any more, work goes on");
    this.#onFreed();
  }
}
