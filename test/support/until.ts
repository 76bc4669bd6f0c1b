/** Waits until a condition holds, looking every few milliseconds; fails loudly after a generous time. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  longestMs = 15_000,
): Promise<NonNullable<T> extends false ? never : NonNullable<T>> {
  const endMs = Date.now() + longestMs;
  for (;;) {
    const found = await look();
    if (found) return found as never;
    if (Date.now() > endMs) throw new Error(`waited ${longestMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
