/**
 * How long a job waits before it is tried again, unless its definition says otherwise. Called by the engine with
 * the number of the attempt that just failed, counted from 0.
 */

const maxMs = 300_000;

/** One second, doubled with every attempt, at most five minutes. */
export function defaultBackoff(attempt: number): number {
  return Math.min(1000 * 2 ** attempt, maxMs);
}
