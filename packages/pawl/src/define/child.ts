/**
 * `child`: describes a run that `ctx.spawn` will start. It is plain data: the engine starts the run
 * when it commits the spawn. Called by users in their steps. The engine checks input and options
 * when it makes the run, so that an error can name the child.
 */

import { type DefinitionOf, type InputOf, isDefinition, type StartTarget } from "./definition.js";
import { InvalidOption } from "../values/errors.js";
import { hasBrand } from "../values/brand.js";
import { checkName } from "../values/names.js";
import { show } from "../values/show.js";
import type { StartArguments, StartOptions } from "./start-options.js";

const made: unique symbol = Symbol("pawl.child");

/** A run that `ctx.spawn` will start. Made by `child`. */
export interface Child {
  readonly [made]: true;
  readonly target: StartTarget;
  readonly input: unknown;
  readonly options: StartOptions;
}

const noOptions: StartOptions = Object.freeze({});

/** Describes a child: a definition or its name, with the input and options that `start` takes. */
export function child<Target extends StartTarget>(
  target: Target,
  ...[input, options = noOptions]: StartArguments<InputOf<DefinitionOf<Target>>>
): Child {
  return Object.freeze({ [made]: true as const, target: checkTarget(target), input, options });
}

/** Whether `child` made this value. */
export function isChild(value: unknown): value is Child {
  return hasBrand(value, made);
}

function checkTarget(target: unknown): StartTarget {
  if (typeof target === "string") return checkName("definition", target);
  if (isDefinition(target)) return target;
  throw new InvalidOption(
    `child takes a definition made by job(…), machine(…) or workflow(…), or its name, not ${show(target)}`,
  );
}
