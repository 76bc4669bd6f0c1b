/**
 * Tells objects that Pawl made (outcomes, children) from other objects that user code returns or
 * passes in. The module that makes them keeps the symbol private, so no other object, and no JSON,
 * carries it.
 */

/** Whether `value` carries the brand. Never throws, even for a proxy. */
export function hasBrand(value: unknown, brand: symbol): boolean {
  if (typeof value !== "object" || value === null) return false;
  try {
    return Reflect.get(value, brand) === true;
  } catch {
    // A proxy of the user threw.
    return false;
  }
}
