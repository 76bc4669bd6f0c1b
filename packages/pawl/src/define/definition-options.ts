/**
 * The options that every kind of definition takes, with defaults and checks. Called by `job`,
 * `machine` and `workflow`, so that a mistake shows in the definition and not in a worker.
 */

import type { DefinitionFields } from "./definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { checkName, checkVersion } from "../values/names.js";
import { checkInteger, checkOptions, type GivenOptions } from "../values/options.js";
import { checkSignals } from "./signal.js";

/** The options of every definition. */
export interface DefinitionOptions<Name extends string, Signals> {
  readonly name: Name;
  /**
   * A run finishes on the version it started with. Raise it if existing runs cannot continue.
   * Default 1.
   */
  readonly version?: number | undefined;
  /** Default "default". */
  readonly queue?: string | undefined;
  /** Lower runs first. Default 0. */
  readonly priority?: number | undefined;
  /** How long Pawl keeps a run after its end. Default "30d". */
  readonly retention?: Duration | undefined;
  /** How many worker crashes without progress a run survives. */
  readonly maxCrashes?: number | undefined;
  /** The signals that a run accepts: types of their names and payloads. */
  readonly signals?: Signals | undefined;
}

const defaults = { version: 1, queue: "default", priority: 0, retention: "30d" } as const;

const names = ["name", "version", "queue", "priority", "retention", "maxCrashes", "signals"] as const;

/** Checks the options: the part that all definitions share, and the options of this kind. */
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

/** An option that is undefined counts as missing. */
function withoutUndefined<Options extends object>(options: Options): Partial<Options>;
function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
