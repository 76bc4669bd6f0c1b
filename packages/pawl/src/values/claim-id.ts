/**
 * Makes claim ids of 63 bits, never 0. The upper 26 bits are the time, so the ids of one process
 * grow and a heartbeat can ask for the latest only. The other bits are random. Claims are committed
 * asynchronously: after a database crash, a counter could issue the same number twice, and a zombie
 * could commit under it.
 */

import { randomFillSync } from "node:crypto";
import { monotonicMs } from "./monotonic-clock.js";

const randomBits = 37n;
const tickMs = 16_384;
const ticks = 2 ** 26;

/** Random numbers, drawn in bulk: drawing many costs as much as drawing one. */
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

/** The lowest claim id that this process can make at this time or later. */
export function lowestClaimId(atMs: number): string {
  return lowestAt(Math.max(0, atMs)).toString();
}

function lowestAt(atMs: number): bigint {
  return BigInt(Math.floor(atMs / tickMs) % ticks) << randomBits;
}
