/**
 * `runs.cancel`, `runs.pause`, `queues.pause`, `definitions.pause` and their `resume`: checks options
 * and turns answers into results and errors. Used by the client.
 */

import { type AnyDefinition, isDefinition } from "../define/definition.js";
import type { ClientTransport } from "../store/client-transport.js";
import type { PauseAnswer, PauseRequest, PauseTransport, StoredPause } from "../store/pauses.js";
import { InvalidOption, RunEnded } from "../values/errors.js";
import { checkAnyName, checkName, checkVersion } from "../values/names.js";
import { checkOptions, checkString } from "../values/options.js";
import { statusOf } from "../values/phase.js";
import { checkRunId, notFound } from "../values/run-id.js";
import { show } from "../values/show.js";
import type { Cancelled } from "./pawl.js";

export interface PauseOptions {
  /** Why, for the people who ask. `why` and `runs.get` show it. */
  readonly reason?: string | undefined;
  /**
   * The person who pauses it. Default: the user of the operating system and the machine, such as
   * "alice@laptop"; through a server, the name of the token.
   */
  readonly by?: string | undefined;
}

export interface DefinitionPauseOptions extends PauseOptions {
  /** Pause this version only. Default: all versions. */
  readonly version?: number | undefined;
}

export interface ResumeOptions {
  /** Resume the pause of this version only. Default: all pauses of the definition. */
  readonly version?: number | undefined;
}

export interface PauseChange {
  /** False: it was paused (or was not paused) before, and nothing has changed. */
  readonly changed: boolean;
}

/** A paused queue. */
export type PausedQueue = Omit<StoredPause, "scope" | "version">;
/** A paused definition. `version` null: all its versions. */
export type PausedDefinition = Omit<StoredPause, "scope">;

export interface Definitions {
  /**
   * Pauses a definition, all versions or one: running steps finish, and no worker begins a step of
   * its runs. Runs still start, signals are still delivered, and all of them wait.
   */
  pause(definition: string | AnyDefinition, options?: DefinitionPauseOptions): Promise<PauseChange>;
  /**
   * Resumes a definition. `still` is true if you resume one version and the pause of all versions
   * remains.
   */
  resume(
    definition: string | AnyDefinition,
    options?: ResumeOptions,
  ): Promise<PauseChange & { readonly still: boolean }>;
  /** The paused definitions, oldest pause first. */
  paused(): Promise<PausedDefinition[]>;
}

export interface QueuePauses {
  /**
   * Pauses a queue: running steps finish, and no worker begins a step of its runs. `receive`
   * returns no messages of a queue with this name. Runs still start, messages are still sent, and
   * all of them wait.
   */
  pause(queue: string, options?: PauseOptions): Promise<PauseChange>;
  /** Resumes a queue. */
  resume(queue: string): Promise<PauseChange>;
  /** The paused queues, oldest pause first. */
  paused(): Promise<PausedQueue[]>;
}

export interface RunPauses {
  /**
   * Pauses a run: it finishes its present step and then stays. Signals are still delivered, and
   * timers wait. Throws `RunNotFound` or `RunEnded`.
   */
  pause(runId: string, options?: PauseOptions): Promise<PauseChange>;
  /** Resumes a run where it stopped. Throws `RunNotFound` or `RunEnded`. */
  resume(runId: string): Promise<PauseChange>;
}

type Open = () => Promise<PauseTransport>;

const maxReasonBytes = 8_192;
const maxByBytes = 256;

export function runPausesOver(transport: Open): RunPauses {
  return {
    pause: async (runId, options = {}) => {
      const request = toRequest(checkOptions(options, ["reason", "by"], "the options of runs.pause"));
      const id = checkRunId(runId);
      return toChange(runId, "paused", await (await transport()).pauseRun(id, request));
    },
    resume: async (runId) => {
      const id = checkRunId(runId);
      return toChange(runId, "resumed", await (await transport()).resumeRun(id));
    },
  };
}

export function queuePausesOver(transport: Open): QueuePauses {
  const target = (queue: unknown) =>
    ({ scope: "queue", name: checkAnyName("queue", queue), version: null }) as const;
  return {
    pause: async (queue, options = {}) => {
      const request = toRequest(checkOptions(options, ["reason", "by"], "the options of queues.pause"));
      const checked = target(queue);
      return (await transport()).pause(checked, request);
    },
    resume: async (queue) => {
      const checked = target(queue);
      const { changed } = await (await transport()).resume(checked);
      return { changed };
    },
    paused: async () => {
      const all = await (await transport()).list();
      return all
        .filter(({ scope }) => scope === "queue")
        .map(({ name, by, reason, since }) => ({ name, by, reason, since }));
    },
  };
}

export function definitionsOver(transport: Open): Definitions {
  const target = (definition: unknown, version: unknown) =>
    ({
      scope: "definition",
      name: isDefinition(definition) ? definition.name : checkName("definition", definition),
      version: version === undefined ? null : checkVersion(version),
    }) as const;
  return {
    pause: async (definition, options = {}) => {
      const what = "the options of definitions.pause";
      const { version, ...rest } = checkOptions(options, ["version", "reason", "by"], what);
      const checked = target(definition, version);
      const request = toRequest(rest);
      return (await transport()).pause(checked, request);
    },
    resume: async (definition, options = {}) => {
      const { version } = checkOptions(options, ["version"], "the options of definitions.resume");
      const checked = target(definition, version);
      return (await transport()).resume(checked);
    },
    paused: async () => {
      const all = await (await transport()).list();
      return all.filter(({ scope }) => scope === "definition").map(({ scope: _scope, ...pause }) => pause);
    },
  };
}

function toRequest({ reason, by }: { reason?: unknown; by?: unknown }): PauseRequest {
  return {
    reason: reason === undefined ? null : checkString(reason, "reason", { maxBytes: maxReasonBytes }),
    by: by === undefined ? null : checkString(by, "by", { maxBytes: maxByBytes }),
  };
}

function toChange(runId: string, what: string, { verdict, phase }: PauseAnswer): PauseChange {
  switch (verdict) {
    case "not_found":
      throw notFound(runId);
    case "ended":
      throw new RunEnded(
        `run ${runId} has already ended (${phase === null ? "unknown" : statusOf(phase)}) and cannot be ${what}`,
      );
    case "changed":
    case "already":
      return { changed: verdict === "changed" };
  }
}

export function checkCancel(options: unknown): { reason: string | null; cascade: boolean } {
  const { reason, cascade = false } = checkOptions(
    options,
    ["reason", "cascade"],
    "the options of runs.cancel",
  );
  if (typeof cascade !== "boolean") {
    throw new InvalidOption(`cascade must be true or false, not ${show(cascade)}`);
  }
  return {
    reason: reason === undefined ? null : checkString(reason, "reason", { maxBytes: 8_192 }),
    cascade,
  };
}

/** How many runs were cancelled. Throws if the run does not exist, or has ended otherwise. */
export function toCancelled(
  runId: string,
  { verdict, phase, cancelled }: Awaited<ReturnType<ClientTransport["cancel"]>>,
): Cancelled {
  switch (verdict) {
    case "not_found":
      throw notFound(runId);
    case "ended":
      throw new RunEnded(
        `run ${runId} has already ended (${phase === null ? "unknown" : statusOf(phase)}) and cannot be cancelled`,
      );
    case "cancelled":
    case "already":
      return { cancelled };
  }
}
