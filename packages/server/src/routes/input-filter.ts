/**
 * The filters of a listing that have names of their own: `input.<path>=<value>` for members that the
 * input of a run must contain, and `tag.<name>=<value>` for its tags.
 */

import { InvalidOption, type Json } from "pawl";
import { values } from "pawl/engine";

const { isObject, show, suggest } = values;

const prefix = "input.";
const tagPrefix = "tag.";
const bounds = { filters: 20, depth: 20 };

/**
 * Splits a query into known options and one object from all filters: `input.user.id=42` becomes `{
 * user: { id: 42 } }`. A value that is not JSON is a text; `"42"` in quotes is a text too. A tag
 * `tag.customer=42` becomes the option `tags`. Refuses every other name.
 */
export function splitQuery(
  query: Readonly<Record<string, unknown>>,
  known: readonly string[],
): { options: Record<string, unknown>; input: Json | undefined } {
  const options: Record<string, unknown> = {};
  const filters: [path: string[], value: Json][] = [];
  const tags: [name: string, value: string][] = [];
  for (const [name, value] of Object.entries(query)) {
    if (known.includes(name)) options[name] = value;
    else if (name.startsWith(prefix)) filters.push([pathOf(name), valueOf(String(value))]);
    else if (name.startsWith(tagPrefix)) tags.push([name.slice(tagPrefix.length), String(value)]);
    else {
      throw new InvalidOption(
        `unknown query parameter ${show(name, 60)}; allowed: ${known.join(", ")}, input.<path>, tag.<name>${suggest(name, known)}`,
      );
    }
  }
  if (filters.length > bounds.filters) {
    throw new InvalidOption(
      `a query may have at most ${bounds.filters} filters on the input, not ${filters.length}`,
    );
  }
  if (tags.length > 0) options["tags"] = Object.fromEntries(tags);
  return { options, input: filters.length === 0 ? undefined : merge(filters) };
}

function pathOf(name: string): string[] {
  const path = name.slice(prefix.length).split(".");
  if (path.every((part) => part !== "") && path.length <= bounds.depth) return path;
  throw new InvalidOption(
    `${show(name, 60)} must be input. and the path of a member, such as input.user.id, at most ${bounds.depth} deep`,
  );
}

function valueOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

type Members = Record<string, unknown>;

/** One object from all filters; without a prototype, so that no name is special. */
function merge(filters: readonly [string[], Json][]): Json {
  const root = Object.create(null) as Members;
  for (const [path, value] of filters) {
    let node = root;
    for (const part of path.slice(0, -1)) {
      const below = (node[part] ??= Object.create(null) as Members);
      if (!isObject(below)) throw twice(path);
      node = below;
    }
    const last = path.at(-1)!;
    if (last in node) throw twice(path);
    node[last] = value;
  }
  return root as Json;
}

function twice(path: readonly string[]): InvalidOption {
  return new InvalidOption(
    `input.${path.join(".")} and another filter concern the same member; give one of them`,
  );
}
