/**
 * `child`: a run that `ctx.spawn` is to start. It is plain data that does nothing by itself; the engine makes a run
 * of it, as `start` would, when it commits the spawn. Called by users in their steps. Input and options are checked
 * when the run is made, so that their errors can say which of the children is meant.
 */

import { type DefinitionOf, type InputOf, isDefinition, type StartTarget } from "./definition.js";
import { InvalidOption } from "../values/errors.js";
import { isMarked } from "../values/mark.js";
import { checkName } from "../values/names.js";
import { show } from "../values/show.js";
import type { StartArguments, StartOptions } from "./start-options.js";

const made: unique symbol = Symbol("pawl.child");

/** A run to be started by `ctx.spawn`, made by `child`. */
export interface Child {
  readonly [made]: true;
  readonly target: StartTarget;
  readonly input: unknown;
  readonly options: StartOptions;
}

const noOptions: StartOptions = Object.freeze({});

/** A child of a definition, or of one known by name only, with the input and options that `start` takes. */
export function child<Target extends StartTarget>(
  target: Target,
  ...[input, options = noOptions]: StartArguments<InputOf<DefinitionOf<Target>>>
): Child {
  return Object.freeze({ [made]: true as const, target: checkTarget(target), input, options });
}

/** Whether `child` made it. */
export function isChild(value: unknown): value is Child {
  return isMarked(value, made);
}

function checkTarget(target: unknown): StartTarget {
  if (typeof target === "string") return checkName("definition", target);
  if (isDefinition(target)) return target;
  throw new InvalidOption(
    `child takes a definition made by job(…), machine(…) or workflow(…), or its name, not ${show(target)}`,
  );
}
