/**
 * Waits until a condition holds, and looks every few milliseconds. The limit only ends a test that would
 * wait forever. It is no assertion about speed, so it is long enough for a machine that does other work.
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  longestMs = 60_000,
): Promise<NonNullable<T> extends false ? never : NonNullable<T>> {
  const endMs = Date.now() + longestMs;
  for (;;) {
    const found = await look();
    if (found) return found as never;
    if (Date.now() > endMs) throw new Error(`waited ${longestMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
