/**
 * `start`, `startMany` and `signal`: checks what it is given and applies schemas before anything is written, sends it on,
 * and tells the caller what came of it. The same for a client and for a transaction of its caller (`api/within.ts`): they
 * differ only in the way (`Route`) that things take to the database.
 */

import type {
  AnyDefinition,
  DefinitionOf,
  DefinitionOfRun,
  InputOf,
  RunId,
  SignalArguments,
  SignalNameOf,
  StartTarget,
} from "../define/definition.js";
import {
  InboxFull,
  InvalidInput,
  InvalidOption,
  KeyConflict,
  RunEnded,
  RunNotFound,
} from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkSignalName } from "../values/names.js";
import { checkOptions, checkString } from "../values/options.js";
import { type Status, statusOf } from "../values/phase.js";
import { show } from "../values/show.js";
import type { StartArguments, StartOptions } from "../define/start-options.js";
import { newRun } from "../run/new-run.js";
import { isRunId } from "./runs.js";
import type { NewRun, NewSignal, SignalVerdict, StartedRun } from "../store/store.js";

export interface Started<Definition extends AnyDefinition = AnyDefinition> {
  readonly runId: RunId<Definition>;
  /** False if a key was taken: the run is the one that holds it. */
  readonly created: boolean;
  readonly status: Status;
}

export interface Signalled {
  /** False if the run had a signal with this dedup key before. */
  readonly delivered: boolean;
}

/** What `startMany` takes per run: its input and the options of `start`. */
export interface StartItem<Input> extends StartOptions {
  readonly input: Input;
}

/** The way to the database. */
export interface Route {
  start(run: NewRun): Promise<StartedRun>;
  /** All of them, or none. */
  startMany(runs: readonly NewRun[]): Promise<readonly StartedRun[]>;
  signal(signal: NewSignal): Promise<SignalVerdict>;
}

/** The most runs that one call of `startMany` starts. */
const maxStarts = 10_000;

export class Sender {
  readonly #route: Route;
  readonly #maxPayloadBytes: number;

  constructor(route: Route, { maxPayloadBytes }: { readonly maxPayloadBytes: number }) {
    this.#route = route;
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  async start<Target extends StartTarget>(
    target: Target,
    ...[input, options = {}]: StartArguments<InputOf<DefinitionOf<Target>>>
  ): Promise<Started<DefinitionOf<Target>>> {
    const run = await newRun(target, input, options, { maxBytes: this.#maxPayloadBytes });
    return toStarted(await this.#route.start(run));
  }

  async startMany<Target extends StartTarget>(
    target: Target,
    items: readonly StartItem<InputOf<DefinitionOf<Target>>>[],
  ): Promise<Started<DefinitionOf<Target>>[]> {
    if (!Array.isArray(items) || items.length > maxStarts) {
      throw new InvalidOption(
        `startMany takes a list of at most ${maxStarts} items such as { input, uniqueKey }, not ` +
          (Array.isArray(items) ? `${items.length} items` : show(items)),
      );
    }
    // Not by `map`, which leaves holes in a list as they are.
    const runs = await Promise.all(
      Array.from(items, (item, index) => itemRun(target, item, index, this.#maxPayloadBytes)),
    );
    return runs.length === 0 ? [] : (await this.#route.startMany(runs)).map((started) => toStarted(started));
  }

  signal<Id extends RunId, Name extends SignalNameOf<DefinitionOfRun<Id>>>(
    runId: Id,
    name: Name,
    ...rest: SignalArguments<DefinitionOfRun<Id>, Name>
  ): Promise<Signalled>;
  async signal(
    runId: string,
    name: string,
    payload: unknown = {},
    options: unknown = {},
  ): Promise<Signalled> {
    const { dedupKey } = checkOptions(options, ["dedupKey"], "the options of signal");
    const id = checkRunId(runId);
    if (payload === null) {
      throw new InvalidInput(
        `the payload of signal ${show(name)} is null; leave it out, or give an object or a value`,
      );
    }
    const verdict = await this.#route.signal({
      runId: id,
      name: checkSignalName(name),
      payload: toJson(payload, "payload", this.#maxPayloadBytes).text,
      dedupKey: dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
    });
    switch (verdict) {
      case "delivered":
        return { delivered: true };
      case "duplicate":
        return { delivered: false };
      case "not_found":
        throw notFound(runId);
      case "ended":
        throw new RunEnded(`run ${runId} has ended: it takes no more signals`);
      case "full":
        throw new InboxFull(
          `10,000 signals wait in the inbox of run ${runId}: until it consumes some, it takes no more but the one that it waits for`,
        );
    }
  }
}

/** The id of a run, if it can be one. */
export function checkRunId(runId: unknown): string {
  if (isRunId(runId)) return runId;
  if (typeof runId === "string") throw notFound(runId);
  throw new InvalidOption(`a run id is a string, not ${show(runId)}`);
}

export function notFound(runId: string): RunNotFound {
  return new RunNotFound(`there is no run ${show(runId, 60)}`);
}

/** What a start answers; throws if its keys belong to two runs. */
export function toStarted<Definition extends AnyDefinition = AnyDefinition>({
  runId,
  created,
  phase,
  conflict,
}: StartedRun): Started<Definition> {
  if (conflict !== null) {
    throw new KeyConflict(`the unique key is held by run ${runId}, the idempotency key by run ${conflict}`);
  }
  return { runId, created, status: statusOf(phase) };
}

async function itemRun(
  target: AnyDefinition | string,
  item: StartItem<unknown>,
  index: number,
  maxBytes: number,
): ReturnType<typeof newRun> {
  if (typeof item !== "object" || item === null || !("input" in item)) {
    throw new InvalidOption(
      `item ${index} of startMany must be an object such as { input: … }, not ${show(item)}`,
    );
  }
  const { input, ...options } = item;
  return newRun(target, input, options, { what: `items[${index}].input`, maxBytes });
}
