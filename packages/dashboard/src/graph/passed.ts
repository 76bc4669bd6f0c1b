/**
 * The part of a machine that a run certainly has passed. A machine keeps no journal, so only this is
 * known: the steps and transitions that every way from the first step to the present one takes. Pure.
 */

import type { Arrow } from "./layout.js";

export interface Passed {
  readonly steps: ReadonlySet<string>;
  readonly arrows: ReadonlySet<Arrow>;
}

export function passedUntil(initial: string, present: string, arrows: readonly Arrow[]): Passed {
  const reaches = (isOpen: (arrow: Arrow) => boolean): boolean => {
    const seen = new Set([initial]);
    for (const name of seen) {
      for (const arrow of arrows) if (arrow.from === name && isOpen(arrow)) seen.add(arrow.to);
    }
    return seen.has(present);
  };
  if (!reaches(() => true)) return { steps: new Set([present]), arrows: new Set() };
  const steps = new Set(arrows.flatMap(({ from, to }) => [from, to])).add(initial).add(present);
  const isNeeded = (name: string): boolean =>
    name === initial || name === present || !reaches(({ from, to }) => from !== name && to !== name);
  return {
    steps: new Set([...steps].filter(isNeeded)),
    arrows: new Set(arrows.filter((arrow) => !reaches((one) => one !== arrow))),
  };
}
