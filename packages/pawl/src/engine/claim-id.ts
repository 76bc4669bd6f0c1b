/**
 * Makes the ids of claims: random, 63 bits, never 0. Random because a claim is committed asynchronously: after a
 * crash of the database a counter could issue the same number twice, and a zombie could commit under it.
 */

import { randomBytes } from "node:crypto";

export function newClaimId(): string {
  const bits = randomBytes(8).readBigUInt64BE() >> 1n;
  return bits === 0n ? newClaimId() : bits.toString();
}
