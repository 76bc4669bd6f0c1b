/**
 * Tells what Pawl made (an outcome, a child) from what a user's code happens to return or pass in. Whoever makes
 * such an object keeps the symbol to itself, so nothing else can carry it, and no JSON either.
 */

/** Whether `value` carries the mark. Never throws, whatever the value does when it is looked at. */
export function isMarked(value: unknown, mark: symbol): boolean {
  if (typeof value !== "object" || value === null) return false;
  try {
    return Reflect.get(value, mark) === true;
  } catch {
    // A proxy of the user's.
    return false;
  }
}
