/** The function as a user without the compiler could call it. */
export function untyped(callee: (...given: never[]) => unknown): (...given: unknown[]) => unknown {
  return (...given) => {
    const returned: unknown = Reflect.apply(callee, undefined, given);
    return returned;
  };
}
