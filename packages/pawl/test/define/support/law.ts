/** Laws about types: they hold when the file compiles. */

// oxlint-disable typescript/no-unnecessary-type-parameters -- the compiler compares what it cannot resolve

/** Whether two types are the same, and not only assignable to each other. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** States that something holds: `law<Equal<A, B>>()`. */
export declare function law<_Holds extends true>(): void;
