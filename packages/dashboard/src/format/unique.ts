/**
 * Keys that nobody else has. Browsers offer `crypto.randomUUID` only over https and at localhost; random
 * values they offer everywhere.
 */

const bytes = 16;

/** A key of the dashboard, such as `dashboard-3f…`: 128 random bits. */
export function uniqueKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return `dashboard-${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
