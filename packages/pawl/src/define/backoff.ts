/**
 * The default backoff of jobs: how long a job waits before its next attempt. Called by the engine
 * with the number of the attempt that failed, counted from 0.
 */

const maxMs = 300_000;

/** One second, doubled with every attempt, at most five minutes. */
export function defaultBackoff(attempt: number): number {
  return Math.min(1000 * 2 ** attempt, maxMs);
}
