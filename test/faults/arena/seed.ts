/** Chance that can be repeated: `PAWL_SEED` names the seed of a run that is to be seen again. */

export interface Chance {
  readonly seed: number;
  /** From 0 up to, not including, this. */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
}

export function makeChance(seed = seedFromEnvironment()): Chance {
  let state = seed;
  // A multiply-and-shift generator over 32 bits: short, and good enough to choose victims.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    seed,
    below: (bound) => Math.floor(next() * bound),
    pick: (items) => items[Math.floor(next() * items.length)]!,
  };
}

function seedFromEnvironment(): number {
  const given = process.env["PAWL_SEED"];
  return given === undefined || given === "" ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}
