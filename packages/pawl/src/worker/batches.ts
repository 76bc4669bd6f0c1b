/**
 * Groups the claimed runs of a batch job into calls of its code. A run joins the batch that is being
 * collected. The call begins when the batch is full, or when its first run has waited for
 * `batch.wait`, as soon as a slot is free: one call takes one slot. A run that is cancelled or whose
 * claim is lost leaves the batch before its call. A worker that stops releases the runs that wait
 * for a call. One per queue and batch job, owned by the worker.
 */

import type { Emitter } from "../observe/events.js";
import {
  type BatchDefinition,
  type BatchJoin,
  type BatchMember,
  type BatchOutcome,
  callBatch,
} from "../run/execute-batch.js";
import type { LiveBody } from "../run/control.js";
import { askIfPaused, type Execution } from "../run/execution.js";
import type { Clock } from "../timing/clock.js";
import type { QueueSlots } from "./slots.js";

export interface BatchesHost {
  readonly queue: string;
  /** Calls at once. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly events: Emitter;
  /** How long the code may take to return after all of its runs were aborted. */
  readonly drainMs: number;
  /** One for each run of a full batch. A call with fewer runs takes the others too. */
  readonly slots: Pick<QueueSlots, "take" | "give">;
}

/** A run that waits for a call. */
class Member implements BatchMember, LiveBody {
  readonly execution: Execution;
  readonly input: unknown;
  readonly sinceMs = performance.now();
  readonly resolve: (outcome: BatchOutcome) => void;
  readonly #batches: { leave(member: Member): void };

  constructor(
    { execution, input }: BatchMember,
    resolve: (outcome: BatchOutcome) => void,
    batches: { leave(member: Member): void },
  ) {
    this.execution = execution;
    this.input = input;
    this.resolve = resolve;
    this.#batches = batches;
  }

  onAbort(): void {
    this.#batches.leave(this);
  }

  isAtRest(): boolean {
    return true;
  }
}

const dropped: BatchOutcome = { kind: "dropped" };

export class Batches implements BatchJoin {
  readonly #definition: BatchDefinition;
  readonly #host: BatchesHost;
  /** The runs that wait for a call, in the order of their arrival. */
  readonly #collected = new Set<Member>();
  #calls = 0;
  /** The first run of the batch has waited long enough. */
  #isDue = false;
  #isStopped = false;
  #endWait: (() => void) | undefined;

  constructor(definition: BatchDefinition, host: BatchesHost) {
    this.#definition = definition;
    this.#host = host;
  }

  /** Resolves with the outcome of this run, after the call that it becomes part of. */
  join(joining: BatchMember): Promise<BatchOutcome> {
    return new Promise((resolve) => {
      const { control } = joining.execution;
      if (this.#isStopped || control.isAborted) return resolve(dropped);
      const member = new Member(joining, resolve, this);
      control.setBody(member);
      this.#collected.add(member);
      this.#callNext();
    });
  }

  /** Does not wait for more runs. Answers whether it called some. */
  hurry(): boolean {
    const waiting = this.#collected.size;
    this.#isDue = waiting > 0;
    this.#callNext();
    return this.#collected.size < waiting;
  }

  /** The worker stops: the runs that wait for a call are released with their attempt unchanged. */
  stop(): void {
    this.#isStopped = true;
    this.#endWait?.();
    for (const { execution, resolve } of this.#take(this.#collected.size)) {
      execution.control.stop();
      resolve(dropped);
    }
  }

  /** The run was cancelled, or its claim is lost, before its call. */
  leave(member: Member): void {
    this.#collected.delete(member);
    member.resolve(dropped);
    if (this.#collected.size === 0) this.#forgetWait();
  }

  /** The first runs that wait for a call, which it forgets. */
  #take(count: number): Member[] {
    const taken: Member[] = [];
    for (const member of this.#collected) {
      if (taken.length === count) break;
      this.#collected.delete(member);
      taken.push(member);
    }
    return taken;
  }

  #callNext(): void {
    const { size, waitMs } = this.#definition.batch;
    while (this.#collected.size > 0 && this.#calls < this.#host.concurrency) {
      if (this.#collected.size < size && !this.#isDue) break;
      void this.#call(this.#take(size));
      this.#forgetWait();
    }
    const [first] = this.#collected;
    if (first === undefined || this.#isDue || this.#endWait !== undefined) return;
    this.#endWait = this.#host.clock.after(first.sinceMs + waitMs - performance.now(), () => {
      this.#endWait = undefined;
      this.hurry();
    });
  }

  #forgetWait(): void {
    this.#isDue = false;
    this.#endWait?.();
    this.#endWait = undefined;
  }

  async #call(given: readonly Member[]): Promise<void> {
    const { queue, events, slots } = this.#host;
    const { name, version, batch } = this.#definition;
    this.#calls++;
    slots.take(batch.size - given.length);
    const isTold = given.every(({ execution }) => execution.isTold);
    const members = isTold ? given : await this.#unlessPaused(given);
    const size = members.length;
    slots.take(given.length - size);
    const begunMs = performance.now();
    const outcomes =
      size === 0 ? [] : await this.#untilLeft(members, () => callBatch(this.#definition, members));
    if (size > 0 && events.hears("batch")) {
      events.emit("batch", { name, version, queue, size, durationMs: performance.now() - begunMs });
    }
    for (let index = 0; index < size; index++) {
      const { execution, resolve } = members[index]!;
      execution.control.setBody(null);
      resolve(outcomes?.[index] ?? dropped);
    }
    this.#calls--;
    slots.give(batch.size - size);
    this.#callNext();
  }

  /**
   * Those of these runs that may be executed. They have waited for their call, and somebody may have
   * paused or cancelled some of them meanwhile.
   */
  async #unlessPaused(members: readonly Member[]): Promise<readonly Member[]> {
    await askIfPaused(members.map(({ execution }) => execution));
    return members.filter(({ execution: { control }, resolve }) => {
      if (!control.isPaused && !control.isAborted) return true;
      resolve(dropped);
      return false;
    });
  }

  /**
   * The outcomes of a call; null if all of its runs were aborted, and its code did not return in
   * time. Code that never returns must not keep its slot.
   */
  #untilLeft(
    members: readonly Member[],
    call: () => Promise<readonly BatchOutcome[]>,
  ): Promise<readonly BatchOutcome[] | null> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      let left = members.length;
      const onAbort = (): void => {
        if (--left > 0) return;
        timer = setTimeout(() => resolve(null), this.#host.drainMs);
        timer.unref();
      };
      const body = { onAbort, isAtRest: () => false };
      for (const { execution } of members) execution.control.setBody(body);
      void call().then((outcomes) => {
        clearTimeout(timer);
        resolve(outcomes);
      });
    });
  }
}
