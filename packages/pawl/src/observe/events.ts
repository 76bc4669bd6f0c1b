/**
 * Typed events of a process. The metrics count them, and users listen to them. Pawl emits an event
 * after the change is committed. If a listener throws or rejects, Pawl logs it and carries on.
 * Events contain names, ids and times, and the errors that user code threw; never inputs, states,
 * payloads or results. Each worker owns one `Events`. The clients of its process report starts, signals and cancellations to it through
 * the hub.
 */

import { InvalidOption } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { checkFunction, suggest } from "../values/options.js";
import type { Status } from "../values/phase.js";
import { show } from "../values/show.js";
import type { StepKind } from "../store/journal.js";

interface OfRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
}

interface OfStep extends OfRun {
  /** The name of the step; `run` for a job. */
  readonly step: string;
  readonly kind: StepKind;
  /** Counted from 0. */
  readonly attempt: number;
}

/** The events by name. */
export interface EventMap {
  /**
   * A client of this process started a run, or a worker started a child. Not emitted for starts
   * inside your own transaction, by SQL or through a server; the server emits its own.
   */
  readonly "run.started": {
    /** Null for a child that a machine spawned. */
    readonly runId: string | null;
    readonly name: string;
    /** Null for a start by name. */
    readonly version: number | null;
    readonly parentId: string | null;
  };
  /** A worker begins to execute a run, or continues it. */
  readonly "run.claimed": OfRun & { readonly queue: string; readonly attempt: number };
  /**
   * The worker no longer holds the claim: the run ended, waits, will be retried, or was released.
   */
  readonly "run.released": OfRun & { readonly queue: string };
  /** A run has ended. */
  readonly "run.completed": {
    readonly runId: string;
    readonly name: string;
    readonly status: Exclude<Status, "running">;
    /** The code, or else the name, of the error of a failed run. */
    readonly code: string | null;
    /** Since its start; null for a cancelled run. */
    readonly durationMs: number | null;
  };
  /**
   * A worker of this process recorded the failure of a run. `run.completed` comes with it, and also
   * for runs that others end.
   */
  readonly "run.failed": OfRun & {
    /** The step that failed; `run` for a job, null for the body of a workflow. */
    readonly step: string | null;
    /** Counted from 0. */
    readonly attempt: number;
    /** The code, or else the name, of the error. */
    readonly code: string;
    /** The value itself that user code threw, or the error of Pawl. */
    readonly error: unknown;
    /** Since its start. */
    readonly durationMs: number;
  };
  /**
   * A run entered its unique scope while another run held its key, and lost the key. Emitted by the
   * process whose commit, claim or cancellation moved it. If a signal or the end of a child or
   * worker moved it, the next claim of the run emits it.
   */
  readonly "run.unique_lost": OfRun;
  /** A client of this process paused a run. */
  readonly "run.paused": { readonly runId: string; readonly name: string; readonly by: string };
  /** A client of this process resumed a run. */
  readonly "run.resumed": { readonly runId: string; readonly name: string };
  /** The worker is about to call the function of a step. Not emitted for waits. */
  readonly "step.started": OfStep;
  /** A step has completed. */
  readonly "step.completed": OfStep & {
    /** How long its function took; null for a wait. */
    readonly durationMs: number | null;
  };
  /** A step failed and will not be retried. */
  readonly "step.failed": OfStep & {
    readonly durationMs: number | null;
    /** The value itself that the step threw; `ChildFailed` if an invoked run failed. */
    readonly error: unknown;
  };
  /** An attempt failed, and the step will be retried. */
  readonly "step.retried": OfStep & {
    readonly durationMs: number;
    readonly delayMs: number;
    /** The value itself that the step threw; null if it returned `ctx.retry(…)`. */
    readonly error: unknown;
  };
  /** A client of this process delivered a signal. */
  readonly "signal.delivered": {
    readonly runId: string;
    /** The definition of that run. */
    readonly name: string;
    readonly event: string;
  };
  /** The worker polled a queue and claimed this many runs; 0 for an empty poll. */
  readonly claim: { readonly queue: string; readonly runs: number; readonly durationMs: number };
  /** This many runs were postponed, because their rate limit had no token. */
  readonly "run.throttled": { readonly queue: string; readonly runs: number };
  /**
   * A run made every claim of its queue fail and was set aside. `message` is the database error.
   */
  readonly "run.set_aside": {
    readonly queue: string;
    readonly runId: string;
    readonly code: string;
    readonly message: string;
  };
  /** One batch of outcomes (`commit`) or journal entries (`record`) was written. */
  readonly flush: {
    readonly what: "commit" | "record";
    readonly size: number;
    readonly durationMs: number;
  };
  /** The code of a batch job was called with this many runs, and returned or threw. */
  readonly batch: {
    readonly name: string;
    readonly version: number;
    readonly queue: string;
    readonly size: number;
    readonly durationMs: number;
  };
  /** The outcome of a step was not recorded, because the worker had lost its claim. */
  readonly "commit.stale": OfRun;
  /**
   * A schedule started a run at a tick (`at`), so many milliseconds after the tick and the offset of
   * its jitter.
   */
  readonly "schedule.fired": {
    readonly schedule: string;
    readonly runId: string;
    /** The definition of that run. */
    readonly name: string;
    readonly at: Date;
    readonly lateMs: number;
  };
  /** A schedule started no run at a tick, because its last run was not terminal. */
  readonly "schedule.skipped": { readonly schedule: string; readonly at: Date };
  /** The database refused to start the run of a schedule. It tries again at its next tick. */
  readonly "schedule.failed": {
    readonly schedule: string;
    readonly code: string;
    readonly message: string;
  };
  /** A batch of a bulk operation was worked off: how many runs were done, skipped and failed. */
  readonly "bulk.worked": {
    readonly id: string;
    readonly action: string;
    readonly done: number;
    readonly skipped: number;
    readonly failed: number;
  };
  /** Runs of dead workers were made runnable again. */
  readonly "reaper.reaped": { readonly runs: number };
  /** Runs past their retention were deleted. */
  readonly "sweeper.swept": { readonly runs: number };
  /**
   * The worker could not confirm its heartbeats. It aborts its steps and registers under a new id.
   */
  readonly "lease.lost": { readonly reason: string };
}

export type EventName = keyof EventMap;
export type EventListener<Name extends EventName> = (event: EventMap[Name]) => unknown;

const names: Readonly<Record<EventName, true>> = {
  "run.started": true,
  "run.claimed": true,
  "run.released": true,
  "run.completed": true,
  "run.failed": true,
  "run.unique_lost": true,
  "run.paused": true,
  "run.resumed": true,
  "step.started": true,
  "step.completed": true,
  "step.failed": true,
  "step.retried": true,
  "signal.delivered": true,
  claim: true,
  "run.throttled": true,
  "run.set_aside": true,
  flush: true,
  batch: true,
  "commit.stale": true,
  "schedule.fired": true,
  "schedule.skipped": true,
  "schedule.failed": true,
  "bulk.worked": true,
  "reaper.reaped": true,
  "sweeper.swept": true,
  "lease.lost": true,
};

/**
 * Call `hears` before you build an event, so that an event without listeners costs almost nothing.
 */
export interface Emitter {
  hears(name: EventName): boolean;
  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void;
}

const none: readonly EventListener<EventName>[] = [];

export class Events implements Emitter {
  readonly #logger: Logger;
  /** Each list is replaced, never changed: `emit` may be walking over it. */
  readonly #listeners = new Map<EventName, readonly EventListener<EventName>[]>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Calls the listener at every such event. Call the returned function to remove it. */
  on<Name extends EventName>(name: Name, listener: EventListener<Name>): () => void {
    checkFunction(listener, "the listener");
    const checked = checkEvent(name);
    const others = this.#listenersOf(checked).filter((one) => one !== listener);
    this.#listeners.set(checked, [...others, listener as EventListener<EventName>]);
    return () => this.off(name, listener);
  }

  /** Calls the listener at the next such event. */
  once<Name extends EventName>(name: Name, listener: EventListener<Name>): () => void {
    checkFunction(listener, "the listener");
    const off = this.on(name, (event) => {
      off();
      return listener(event);
    });
    return off;
  }

  off<Name extends EventName>(name: Name, listener: EventListener<Name>): void {
    const checked = checkEvent(name);
    this.#listeners.set(
      checked,
      this.#listenersOf(checked).filter((one) => one !== listener),
    );
  }

  hears(name: EventName): boolean {
    return this.#listenersOf(name).length > 0;
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of this.#listenersOf(name)) {
      try {
        const returned: unknown = listener(event);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#logFailure(name, error));
      } catch (error) {
        this.#logFailure(name, error);
      }
    }
  }

  #listenersOf(name: EventName): readonly EventListener<EventName>[] {
    return this.#listeners.get(name) ?? none;
  }

  #logFailure(name: EventName, error: unknown): void {
    this.#logger.error({ err: error, event: name }, `pawl: a listener of the event "${name}" failed`);
  }
}

function checkEvent(given: unknown): EventName {
  if (typeof given === "string" && Object.hasOwn(names, given)) return given as EventName;
  const known = Object.keys(names);
  throw new InvalidOption(
    `there is no event ${show(given)}; the events are ${known.join(", ")}${typeof given === "string" ? suggest(given, known) : ""}`,
  );
}
