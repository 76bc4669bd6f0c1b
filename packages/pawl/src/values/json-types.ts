/**
 * The types of the JSON boundary (`json.ts`): which types can be stored, and which types come back.
 * Types only. Used by the definitions, the contexts and the client.
 */

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [member: string]: Json };

/** Types that JSON represents as they are. `undefined` is a missing member, `void` is no result. */
type Carried = string | number | boolean | null | undefined | void;

/** Types whose values `toJson` refuses at run time. */
type Refused =
  | bigint
  | symbol
  | RegExp
  | Error
  | Promise<unknown>
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | ArrayBufferLike
  | ArrayBufferView
  | ((...given: never) => unknown);

/**
 * `T` with `never` in place of everything that `toJson` refuses. `unknown` and `any` are checked at
 * run time.
 */
export type JsonSafe<T> = unknown extends T
  ? T
  : T extends Json | Carried
    ? T
    : T extends Refused
      ? never
      : T extends { toJSON(...given: never): unknown }
        ? T
        : T extends readonly (infer Item)[]
          ? WithoutUndefined<T, Item>
          : T extends object
            ? { [K in keyof T]: JsonSafe<T[K]> }
            : never;

/**
 * A bound for type parameters: `T extends JsonObject<T>`. A mapped type, because a conditional one
 * is circular.
 */
export type JsonObject<T> = { [K in keyof T]: JsonSafe<T[K]> };

/** JSON has no `undefined` in arrays: an item that may be undefined is refused. */
type WithoutUndefined<T, Item> = unknown extends Item
  ? T
  : undefined extends Item
    ? never
    : { [K in keyof T]: JsonSafe<T[K]> };

/**
 * The type that a stored `T` comes back as: dates as strings, members that may be undefined as
 * optional.
 */
export type Jsonify<T> = unknown extends T
  ? T
  : T extends Json
    ? T
    : T extends undefined | void
      ? null
      : T extends { toJSON(...given: never): infer Encoded }
        ? Jsonify<Encoded>
        : T extends Refused
          ? never
          : T extends readonly unknown[]
            ? { [K in keyof T]: Jsonify<T[K]> }
            : JsonifyMembers<T>;

type JsonifyMembers<T> = Flat<
  { [K in keyof T as Optional<T[K]> extends true ? never : K]: Jsonify<T[K]> } & {
    [K in keyof T as Optional<T[K]> extends true ? K : never]?: Jsonify<Exclude<T[K], undefined>>;
  }
>;

/**
 * The type to pass where a `T` is stored: a `T`, a `T` that was read back, or a mixture (a spread).
 */
export type Encodable<T> = unknown extends T
  ? T
  : T extends Json | Carried
    ? T
    : T extends { toJSON(...given: never): unknown }
      ? T | Jsonify<T>
      : T extends readonly unknown[]
        ? { [K in keyof T]: Encodable<T[K]> }
        : EncodableMembers<T>;

type EncodableMembers<T> = Flat<
  { [K in keyof T as Optional<T[K]> extends true ? never : K]: Encodable<T[K]> } & {
    [K in keyof T as Optional<T[K]> extends true ? K : never]?: Encodable<T[K]>;
  }
>;

/** Whether a member may be undefined. False for `unknown` and `any`. */
type Optional<T> = unknown extends T ? false : undefined extends T ? true : false;

/**
 * The members of an intersection as one object type. `infer` makes compiler messages show it as
 * one.
 */
type Flat<T> = T extends infer Members ? { [K in keyof Members]: Members[K] } : never;
