/**
 * Typed events: what a process does with its runs, told to whoever listens. Everything that the metrics count is an event. They are told at
 * once, after what they tell is committed; a listener that throws, or whose promise rejects, is logged, and can change nothing.
 * Events carry names, ids and times, never inputs, states, payloads or results. A worker has one of these, and the clients of its process
 * tell it of their starts, signals and cancellations through the hub.
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
  /** The name of the step; `run` of a job, which has but one. */
  readonly step: string;
  readonly kind: StepKind;
  /** Counted from 0. */
  readonly attempt: number;
}

/** The events by name. */
export interface EventMap {
  /** A run was started, by a client of this process or as a child. Not those started in a transaction of yours, by SQL, or through a server, which counts them. */
  readonly "run.started": {
    /** null: a child that a machine has spawned. */
    readonly runId: string | null;
    readonly name: string;
    /** null: started by its name only. */
    readonly version: number | null;
    readonly parentId: string | null;
  };
  /** A worker begins, or goes on, to execute a run. */
  readonly "run.claimed": OfRun & { readonly queue: string; readonly attempt: number };
  /** Its claim has ended: the run has ended, waits for something, is to be tried again, or was let go. */
  readonly "run.released": OfRun & { readonly queue: string };
  /** A run has ended. */
  readonly "run.completed": {
    readonly runId: string;
    readonly name: string;
    readonly status: Exclude<Status, "running">;
    /** The code, or else the name, of the error of a run that has failed. */
    readonly code: string | null;
    /** Since it was started; null of a run that was cancelled. */
    readonly durationMs: number | null;
  };
  /**
   * A run has entered its unique scope while its key was taken, and gave the key up. Told by who made it enter: a commit, a claim or
   * a cancellation; if it was a signal, the end of a child or of a worker, by the next claim of the run.
   */
  readonly "run.unique_lost": OfRun;
  /** A step is begun: its function is called. Not of waits. */
  readonly "step.started": OfStep;
  /** A step has completed. */
  readonly "step.completed": OfStep & {
    /** How long its function took; null of a wait. */
    readonly durationMs: number | null;
  };
  /** A step has failed for good. */
  readonly "step.failed": OfStep & { readonly durationMs: number | null };
  /** A step is to be tried again. */
  readonly "step.retried": OfStep & { readonly durationMs: number; readonly delayMs: number };
  /** A client of this process has put a signal into an inbox. */
  readonly "signal.delivered": {
    readonly runId: string;
    /** The definition of that run. */
    readonly name: string;
    readonly event: string;
  };
  /** A queue was looked at, and so many runs were claimed there; 0: an empty look. */
  readonly claim: { readonly queue: string; readonly runs: number; readonly durationMs: number };
  /** So many runs were found for which their rate limit had no token, and were put off. */
  readonly "run.throttled": { readonly queue: string; readonly runs: number };
  /** A run made every claim of its queue fail, and was set aside; `message` is what the database said. */
  readonly "run.set_aside": {
    readonly queue: string;
    readonly runId: string;
    readonly code: string;
    readonly message: string;
  };
  /** Outcomes (`commit`) or journal entries (`record`) were written together. */
  readonly flush: {
    readonly what: "commit" | "record";
    readonly size: number;
    readonly durationMs: number;
  };
  /** What a step did was not recorded, because the claim on its run was lost. */
  readonly "commit.stale": OfRun;
  /** Runs of dead workers are runnable again. */
  readonly "reaper.reaped": { readonly runs: number };
  /** Runs past their retention were deleted. */
  readonly "sweeper.swept": { readonly runs: number };
  /** The worker could not confirm its heartbeats: its steps are aborted, and it goes on under a new id. */
  readonly "lease.lost": { readonly reason: string };
}

export type EventName = keyof EventMap;
export type EventListener<Name extends EventName> = (event: EventMap[Name]) => unknown;

const names: Readonly<Record<EventName, true>> = {
  "run.started": true,
  "run.claimed": true,
  "run.released": true,
  "run.completed": true,
  "run.unique_lost": true,
  "step.started": true,
  "step.completed": true,
  "step.failed": true,
  "step.retried": true,
  "signal.delivered": true,
  claim: true,
  "run.throttled": true,
  "run.set_aside": true,
  flush: true,
  "commit.stale": true,
  "reaper.reaped": true,
  "sweeper.swept": true,
  "lease.lost": true,
};

/** What is asked before an event is made, so that one that nobody hears costs next to nothing. */
export interface Emitter {
  hears(name: EventName): boolean;
  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void;
}

export class Events implements Emitter {
  readonly #logger: Logger;
  /** Lists that are never changed, only replaced: one may be walked over meanwhile. */
  readonly #listeners = Object.fromEntries(Object.keys(names).map((name) => [name, []])) as unknown as Record<
    EventName,
    readonly EventListener<EventName>[]
  >;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Calls the listener at every such event; the function it gives takes that back. */
  on<Name extends EventName>(name: Name, listener: EventListener<Name>): () => void {
    checkFunction(listener, "the listener");
    const checked = checkEvent(name);
    const others = this.#listeners[checked].filter((one) => one !== listener);
    this.#listeners[checked] = [...others, listener as EventListener<EventName>];
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
    this.#listeners[checked] = this.#listeners[checked].filter((one) => one !== listener);
  }

  hears(name: EventName): boolean {
    return this.#listeners[name].length > 0;
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of this.#listeners[name]) {
      try {
        const returned: unknown = listener(event);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#complain(name, error));
      } catch (error) {
        this.#complain(name, error);
      }
    }
  }

  #complain(name: EventName, error: unknown): void {
    this.#logger.error({ err: error, event: name }, "pawl: a listener has failed");
  }
}

function checkEvent(given: unknown): EventName {
  if (typeof given === "string" && Object.hasOwn(names, given)) return given as EventName;
  const known = Object.keys(names);
  throw new InvalidOption(
    `there is no event ${show(given)}${typeof given === "string" ? suggest(given, known) : ""}; there are ${known.join(", ")}`,
  );
}
