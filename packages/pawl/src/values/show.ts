/**
 * Renders a value for an error message. The text is bounded in length, depth and number of members.
 * Rendering never throws, even if a getter does. Called by every check whose message shows the
 * value.
 */

const bounds = { depth: 3, members: 8, characters: 200 };

/** A short, safe, one-line rendering of `value`. */
export function show(value: unknown, characters = bounds.characters): string {
  let text: string;
  try {
    text = render(value, 0);
  } catch {
    text = `${typeof value === "function" ? "a function" : "an object"} that throws when it is read`;
  }
  return shorten(text, characters);
}

/** Cuts `text` to `characters` and marks the cut with `…`. Never splits a surrogate pair. */
export function shorten(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const last = text.charCodeAt(characters - 2);
  const end = last >= 0xd800 && last <= 0xdbff ? characters - 2 : characters - 1;
  return `${text.slice(0, end)}…`;
}

function render(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      // Cut before quoting: the quotes of a long text would be cut off otherwise.
      return JSON.stringify(shorten(value, bounds.characters - 20));
    case "bigint":
      return `${value}n`;
    case "symbol":
      return String(value);
    case "function":
      return value.name === "" ? "a function" : `function ${value.name}`;
    case "object":
      return value === null ? "null" : renderObject(value, depth);
    case "number":
    case "boolean":
    case "undefined":
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
}

function renderObject(value: object, depth: number): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : value.toISOString();
  if (Array.isArray(value)) return renderArray(value, depth);
  const name = className(value);
  if (value instanceof Map || value instanceof Set) return `${name}(${value.size})`;
  if (value instanceof Promise) return "a Promise";
  const prefix = name === "Object" ? "" : `${name} `;
  const keys = Object.keys(value);
  if (keys.length === 0) return `${prefix}{}`;
  if (depth >= bounds.depth) return `${prefix}{…}`;
  const members = keys
    .slice(0, bounds.members)
    .map((key) => `${renderKey(key)}: ${render(Reflect.get(value, key), depth + 1)}`);
  if (keys.length > members.length) members.push("…");
  return `${prefix}{ ${members.join(", ")} }`;
}

function renderArray(items: readonly unknown[], depth: number): string {
  if (items.length === 0) return "[]";
  if (depth >= bounds.depth) return `[… ${items.length} items]`;
  const shown = items.slice(0, bounds.members).map((item) => render(item, depth + 1));
  if (items.length > shown.length) shown.push("…");
  return `[${shown.join(", ")}]`;
}

const identifier = /^[A-Za-z_$][\w$]*$/;

function renderKey(key: string): string {
  return identifier.test(key) ? key : JSON.stringify(shorten(key, 40));
}

/** One part of a path such as `state.items[3].price`, to append to the others. */
export function pathSegment(key: PropertyKey): string {
  if (typeof key !== "string") return `[${String(key)}]`;
  return identifier.test(key) ? `.${key}` : `[${renderKey(key)}]`;
}

/** The name of the class of `value`, "Object" for plain objects. */
export function className(value: object): string {
  const prototype: { constructor?: unknown } | null = Object.getPrototypeOf(value);
  const constructor = prototype?.constructor;
  return typeof constructor === "function" && constructor.name !== "" ? constructor.name : "Object";
}
