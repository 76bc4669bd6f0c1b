/**
 * Which signals a wait is for: the name is among those awaited, and the payload contains `match` as JSONB's `@>` says.
 * Used by the sequential model wherever a signal meets a wait.
 */

import type { Awaits, Json, Run, Signal } from "./model.js";

export const isMatch = (awaits: Awaits | null, signal: Signal): boolean =>
  awaits?.kind === "signal" &&
  awaits.names.includes(signal.name) &&
  (awaits.match === null || contains(signal.payload, awaits.match));

/** ctx.awaited: what a claim of this run would show, oldest first. */
export const awaitedBy = ({ awaits, inbox }: Run): Signal[] =>
  inbox.filter(
    (signal) =>
      awaits?.kind === "signal" && isMatch(awaits, signal) && signal.seq <= (awaits.upTo ?? Infinity),
  );

/** `whole @> part`. An array contains what its items contain, in any order; at the top also a bare scalar. */
export const contains = (whole: Json, part: Json): boolean =>
  isList(whole) && isScalar(part) ? whole.some((item) => item === part) : includes(whole, part);

const includes = (whole: Json, part: Json): boolean => {
  if (isScalar(whole) || isScalar(part)) {
    return whole === part;
  }
  if (isList(whole) || isList(part)) {
    return (
      isList(whole) && isList(part) && part.every((wanted) => whole.some((item) => includes(item, wanted)))
    );
  }
  return Object.entries(part).every(
    ([key, wanted]) => Object.hasOwn(whole, key) && includes(whole[key]!, wanted),
  );
};

const isList = (value: Json): value is readonly Json[] => Array.isArray(value);

const isScalar = (value: Json): value is null | boolean | number | string =>
  value === null || typeof value !== "object";
