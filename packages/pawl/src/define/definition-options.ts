/**
 * The options that every kind of definition takes, with their defaults, and their checks. Called by `job`, `machine`
 * and `workflow` when a definition is made, so that a mistake shows where it was written and not in a worker.
 */

import type { DefinitionFields } from "./definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { checkName, checkVersion } from "../values/names.js";
import { checkInteger, checkOptions, type GivenOptions } from "../values/options.js";
import { checkSignals } from "./signal.js";

/** The options of every definition. */
export interface DefinitionOptions<Name extends string, Signals> {
  readonly name: Name;
  /** A run finishes on the version it was started with: raise it when running ones could not go on. Default 1. */
  readonly version?: number | undefined;
  /** Default "default". */
  readonly queue?: string | undefined;
  /** Lower runs first. Default 0. */
  readonly priority?: number | undefined;
  /** How long a terminal run is kept. Default "30d". */
  readonly retention?: Duration | undefined;
  /** How many crashes of its worker, without progress, a run survives. */
  readonly maxCrashes?: number | undefined;
  /** The signals that may be sent to a run, for the types of names and payloads. */
  readonly signals?: Signals | undefined;
}

const defaults = { version: 1, queue: "default", priority: 0, retention: "30d" } as const;

const names = ["name", "version", "queue", "priority", "retention", "maxCrashes", "signals"] as const;

/** The common part of a definition, and the checked object for the options of its kind. */
export function checkDefinition<Kind extends DefinitionFields["kind"], Name extends string>(
  kind: Kind,
  given: unknown,
  ownNames: readonly Name[],
): { base: DefinitionFields & { readonly kind: Kind }; own: GivenOptions<Name> } {
  const options = checkOptions(given, [...names, ...ownNames], `the options of ${kind}`);
  const { version, queue, priority, retention, maxCrashes, signals } = {
    ...defaults,
    ...withoutUndefined(options),
  };
  checkSignals(signals);
  const base = {
    kind,
    name: checkName("definition", options.name),
    version: checkVersion(version),
    queue: checkName("queue", queue),
    priority: checkInteger(priority, "priority", { min: -32_768, max: 32_767 }),
    retentionMs: toMilliseconds(retention, "retention"),
    maxCrashes:
      maxCrashes === undefined ? null : checkInteger(maxCrashes, "maxCrashes", { min: 0, max: 1_000_000 }),
  };
  return { base, own: options };
}

/** An option given as undefined is an option left out. */
function withoutUndefined<Options extends object>(options: Options): Partial<Options>;
function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
