/**
 * Makes the ids of claims: 63 bits, never 0, the upper 26 of them the time, so that those of one process grow and a beat can ask
 * for the latest alone; the rest is random. Random because a claim is committed asynchronously: after a crash of the database a
 * counter could issue the same number twice, and a zombie could commit under it.
 */

import { randomFillSync } from "node:crypto";
import { monotonicMs } from "./monotonic.js";

const randomBits = 37n;
const tickMs = 16_384;
const ticks = 2 ** 26;

/** Random numbers, drawn many at a time: that costs as much as one. */
const drawn = new BigUint64Array(256);
let used = drawn.length;

export function newClaimId(): string {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  const random = drawn[used++]! >> (64n - randomBits);
  return (lowestAt(monotonicMs()) + (random === 0n ? 1n : random)).toString();
}

/** No claim id that this process makes at this time, or later, is lower. */
export function lowestClaimId(atMs: number): string {
  return lowestAt(Math.max(0, atMs)).toString();
}

function lowestAt(atMs: number): bigint {
  return BigInt(Math.floor(atMs / tickMs) % ticks) << randomBits;
}
