/** Formats durations, counts and texts of strangers for people. Pure. Used by the doctor and the command. */

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** "350ms", "1.5s", "12m", "3h 5m": the two greatest units, rounded down. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 60_000) return `${Number((Math.floor(ms / 100) / 10).toFixed(1))}s`;
  const index = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[index]!;
  const [next] = units.slice(index + 1);
  const rest = next === undefined ? 0 : Math.floor((ms % size) / next[1]);
  return `${Math.floor(ms / size)}${unit}${next === undefined || rest === 0 ? "" : ` ${rest}${next[0]}`}`;
}

/** Escapes control characters that a terminal would obey: anybody may have put them into a run. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g, (character) =>
    character === "\t" || character === "\n"
      ? " "
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
