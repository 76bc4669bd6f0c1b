/**
 * The options that every kind of definition takes, with defaults and checks. Called by `job`,
 * `machine` and `workflow`, so that a mistake shows in the definition and not in a worker.
 */

import type { DefinitionFields } from "./definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import { checkName, checkVersion } from "../values/names.js";
import { checkInteger, checkOptions, type GivenOptions } from "../values/options.js";
import { show } from "../values/show.js";
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
  /**
   * A run fails with `DeadlineExceeded` if it has not ended this long after it could begin. Default:
   * no deadline.
   */
  readonly timeout?: Duration | undefined;
  /** How many worker crashes without progress a run survives. */
  readonly maxCrashes?: number | undefined;
  /** The signals that a run accepts: types of their names and payloads. */
  readonly signals?: Signals | undefined;
}

const defaults = { version: 1, queue: "default", priority: 0, retention: "30d" } as const;

const names = [
  "name",
  "version",
  "queue",
  "priority",
  "retention",
  "timeout",
  "maxCrashes",
  "signals",
] as const;

/** Checks the options: the part that all definitions share, and the options of this kind. */
export function checkDefinition<Kind extends DefinitionFields["kind"], Name extends string>(
  kind: Kind,
  given: unknown,
  ownNames: readonly Name[],
): { base: DefinitionFields & { readonly kind: Kind }; own: GivenOptions<Name> } {
  const options = checkOptions(given, [...names, ...ownNames], `the options of ${kind}`);
  const { version, queue, priority, retention, timeout, maxCrashes, signals } = {
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
    timeoutMs: timeout === undefined ? null : checkTimeout(timeout),
    maxCrashes:
      maxCrashes === undefined ? null : checkInteger(maxCrashes, "maxCrashes", { min: 0, max: 1_000_000 }),
  };
  return { base, own: options };
}

/** Checks the option `timeout`: how long a whole run may take. */
export function checkTimeout(value: unknown): number {
  const ms = toMilliseconds(value, "timeout");
  if (ms > 0) return ms;
  throw new InvalidOption(
    `timeout must be longer than 0, not ${show(value)}: it is the time in which the whole run must end; leave it out for no deadline`,
  );
}

/** An option that is undefined counts as missing. */
function withoutUndefined<Options extends object>(options: Options): Partial<Options>;
function withoutUndefined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
