/**
 * `start`, `startMany` and `signal`: checks options, applies schemas and encodes values before
 * anything is written, sends the call, and turns the answer into a result or an error. Used by the
 * client, and by `within` for calls in a transaction of the caller. They differ only in the
 * transport.
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
import { InboxFull, InvalidInput, InvalidOption, KeyConflict, RunEnded } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { checkAnyName, checkSignalName } from "../values/names.js";
import { checkOptions, checkString, isObject } from "../values/options.js";
import { type Status, statusOf } from "../values/phase.js";
import { show } from "../values/show.js";
import type { StartArguments, StartOptions } from "../define/start-options.js";
import { newRun } from "../run/new-run.js";
import { checkCorrelationKey } from "../run/rare-options.js";
import type { CorrelatedSignal } from "../store/client-store.js";
import type { SendTransport } from "../store/client-transport.js";
import type { StartedRun } from "../store/runs.js";
import { checkRunId, notFound } from "../values/run-id.js";

export interface Started<Definition extends AnyDefinition = AnyDefinition> {
  readonly runId: RunId<Definition>;
  /** False if another run held the key: `runId` is that run. */
  readonly created: boolean;
  readonly status: Status;
  /**
   * `false` if you started by a name that no worker has ever registered: perhaps a typo. The run
   * waits until a worker registers that name. Missing otherwise, and inside your own transaction.
   */
  readonly served?: false;
  /** With `served: false`: the registered name that is nearest, if one is similar. */
  readonly nearest?: string;
}

export interface Signalled {
  /** False if the run has already received a signal with this dedup key. */
  readonly delivered: boolean;
}

/** The live runs of a correlation key, of one definition or of all. */
export interface CorrelationTarget {
  readonly correlationKey: string;
  /** The name of a definition. Default: runs of any. */
  readonly name?: string | undefined;
}

/** The definition of the signalled run. A correlation key carries no types. */
type DefinitionOfSignalled<Target> = Target extends RunId ? DefinitionOfRun<Target> : AnyDefinition;

/** The answer of `signal`: about the one run, or about all live runs of a correlation key. */
type SignalAnswer<Target> = Target extends string ? Signalled : SignalledRuns;

/** The ids of the live runs of a correlation key, by what became of the signal. */
export interface SignalledRuns {
  readonly delivered: readonly string[];
  /** They have already received a signal with this dedup key. */
  readonly duplicate: readonly string[];
  /** Their inbox is full. */
  readonly full: readonly string[];
}

/** One run of `startMany`: its input and the options of `start`. */
export interface StartItem<Input> extends StartOptions {
  readonly input: Input;
}

const maxStarts = 10_000;

export class Sender {
  readonly #transport: () => Promise<SendTransport>;
  readonly #maxPayloadBytes: number;

  constructor(
    transport: () => Promise<SendTransport>,
    { maxPayloadBytes }: { readonly maxPayloadBytes: number },
  ) {
    this.#transport = transport;
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  async start<Target extends StartTarget>(
    target: Target,
    ...[input, options = {}]: StartArguments<InputOf<DefinitionOf<Target>>>
  ): Promise<Started<DefinitionOf<Target>>> {
    const run = await newRun(target, input, options, { maxBytes: this.#maxPayloadBytes });
    const transport = await this.#transport();
    return toStarted(await transport.start(run));
  }

  async startMany<Target extends StartTarget>(
    target: Target,
    items: readonly StartItem<InputOf<DefinitionOf<Target>>>[],
  ): Promise<Started<DefinitionOf<Target>>[]> {
    if (!Array.isArray(items) || items.length > maxStarts) {
      throw new InvalidOption(
        `startMany takes an array of at most ${maxStarts} items such as { input, uniqueKey }, not ` +
          (Array.isArray(items) ? `${items.length} items` : show(items)),
      );
    }
    // Not with `map`, which skips holes in the array.
    const runs = await Promise.all(
      Array.from(items, (item, index) => itemRun(target, item, index, this.#maxPayloadBytes)),
    );
    if (runs.length === 0) return [];
    const transport = await this.#transport();
    return (await transport.startMany(runs)).map((started) => toStarted(started));
  }

  signal<Target extends RunId | CorrelationTarget, Name extends SignalNameOf<DefinitionOfSignalled<Target>>>(
    target: Target,
    name: Name,
    ...rest: SignalArguments<DefinitionOfSignalled<Target>, Name>
  ): Promise<SignalAnswer<Target>>;
  async signal(
    target: string | CorrelationTarget,
    name: string,
    payload: unknown = {},
    options: unknown = {},
  ): Promise<Signalled | SignalledRuns> {
    const { dedupKey } = checkOptions(options, ["dedupKey"], "the options of signal");
    const to = isObject(target) ? checkCorrelation(target) : checkRunId(target);
    if (payload === null) {
      throw new InvalidInput(
        `the payload of signal ${show(name)} is null; leave it out, or pass an object or another value`,
      );
    }
    const signal = {
      name: checkSignalName(name),
      payload: toJson(payload, "payload", this.#maxPayloadBytes).text,
      dedupKey: dedupKey === undefined ? null : checkString(dedupKey, "dedupKey", { maxBytes: 512 }),
    };
    const transport = await this.#transport();
    if (typeof to !== "string") return toSignalled(await transport.signalCorrelated({ ...signal, ...to }));
    switch (await transport.signal({ runId: to, ...signal })) {
      case "delivered":
        return { delivered: true };
      case "duplicate":
        return { delivered: false };
      case "not_found":
        throw notFound(to);
      case "ended":
        throw new RunEnded(`run ${to} has ended: it takes no more signals`);
      case "full":
        throw new InboxFull(
          `the inbox of run ${to} is full (10,000 signals); until the run consumes some, it accepts only the signal that it waits for`,
        );
    }
  }
}

function checkCorrelation(target: object): Pick<CorrelatedSignal, "correlationKey" | "definition"> {
  const { correlationKey, name } = checkOptions(target, ["correlationKey", "name"], "the target of signal");
  return {
    correlationKey: checkCorrelationKey(correlationKey),
    definition: name === undefined ? null : checkAnyName("definition", name),
  };
}

/** The runs by verdict. A run that has ended meanwhile is in none of the lists. */
function toSignalled(answers: Awaited<ReturnType<SendTransport["signalCorrelated"]>>): SignalledRuns {
  const having = (wanted: string): string[] =>
    answers.filter(({ verdict }) => verdict === wanted).map(({ runId }) => runId);
  return { delivered: having("delivered"), duplicate: having("duplicate"), full: having("full") };
}

/** The answer of a start. Throws if its keys belong to two runs. */
export function toStarted<Definition extends AnyDefinition = AnyDefinition>({
  runId,
  created,
  phase,
  conflict,
  unregistered,
}: StartedRun): Started<Definition> {
  if (conflict !== null) {
    throw new KeyConflict(`the unique key is held by run ${runId}, the idempotency key by run ${conflict}`);
  }
  if (unregistered === undefined) return { runId, created, status: statusOf(phase) };
  const { nearest } = unregistered;
  return {
    runId,
    created,
    status: statusOf(phase),
    served: false,
    ...(nearest === null ? {} : { nearest }),
  };
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
