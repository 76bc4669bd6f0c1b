/** Milliseconds on a clock that never goes back. All threads of the process share it. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
