/** The filters of the list of runs: what stands in the address is what the API gets. Pure. */

export const statuses = ["running", "completed", "failed", "cancelled"] as const;
export const phases = ["runnable", "executing", "awaiting_signal", "awaiting_children"] as const;

/** Spans of time to choose from, as `started` in the address, with their length. */
export const spans: readonly (readonly [value: string, label: string, ms: number])[] = [
  ["15m", "Last 15 minutes", 900_000],
  ["1h", "Last hour", 3_600_000],
  ["24h", "Last 24 hours", 86_400_000],
  ["7d", "Last 7 days", 604_800_000],
];

const known = [
  "name",
  "version",
  "status",
  "phase",
  "queue",
  "kind",
  "error",
  "parentId",
  "paused",
  "correlationKey",
  "since",
  "until",
  "cursor",
];

/** The query of the API for an address. */
export function toApiQuery(address: URLSearchParams, nowMs: number): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of address) {
    if (value !== "" && (known.includes(name) || /^(input|tag)\../.test(name))) query[name] = value;
  }
  const span = spans.find(([value]) => value === address.get("started"));
  // Whole minutes, so that the list is not another one every second.
  if (span !== undefined)
    query["since"] = new Date(Math.floor((nowMs - span[2]) / 60_000) * 60_000).toISOString();
  return query;
}

/** The same filters as JSON, for a bulk operation. */
export function toBulkFilter(address: URLSearchParams, nowMs: number): Record<string, unknown> {
  const { cursor: _page, ...query } = toApiQuery(address, nowMs);
  const where: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(query)) {
    if (name.startsWith("input.")) addMember(where, name.split("."), value);
    else if (name.startsWith("tag."))
      where["tags"] = { ...(where["tags"] as object), [name.slice(4)]: value };
    else if (name === "paused") where[name] = value === "true";
    else where[name] = name === "version" ? Number(value) : value;
  }
  return where;
}

/** The options of `pawl runs bulk` for such a filter; null: it has none for "not paused". */
export function toFlags(where: Readonly<Record<string, unknown>>): string[] | null {
  if (where["paused"] === false) return null;
  return Object.entries(where).flatMap(([name, value]) => {
    switch (name) {
      case "tags":
        return Object.entries(value as Record<string, string>).flatMap(([tag, of]) => [
          "--tag",
          `${tag}=${of}`,
        ]);
      case "input":
        return ["--input", JSON.stringify(value)];
      case "paused":
        return ["--paused"];
      default:
        return [`--${flags[name] ?? name}`, String(value)];
    }
  });
}

const flags: Readonly<Record<string, string>> = { parentId: "parent", correlationKey: "correlation-key" };

/** Sets a member below: a value that is not JSON is a text. */
function addMember(where: Record<string, unknown>, path: readonly string[], text: string): void {
  let node = where;
  for (const part of path.slice(0, -1)) node = (node[part] ??= {}) as Record<string, unknown>;
  let value: unknown = text;
  try {
    value = JSON.parse(text);
  } catch {
    // A text without quotes.
  }
  node[path.at(-1) ?? ""] = value;
}

/** Whether anything but the page is chosen. */
export function isFiltered(address: URLSearchParams): boolean {
  return [...address.keys()].some((name) => name !== "cursor");
}

/** Reads a filter of this kind from a text such as `path=value`; null: the text is no filter. */
export function readPair(kind: "input" | "tag", text: string): readonly [name: string, value: string] | null {
  const [, path, value] = /^\s*([^=\s]+)\s*=\s*(.*\S)\s*$/.exec(text) ?? [];
  if (path === undefined || value === undefined) return null;
  return [path.startsWith(`${kind}.`) ? path : `${kind}.${path}`, value];
}
