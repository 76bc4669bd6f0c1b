/** Times and durations as people read them. Pure: the caller says what time it is. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Such as "just now", "5 min ago", "in 2 h". */
export function relativeTime(atMs: number, nowMs: number): string {
  const away = atMs - nowMs;
  const ms = Math.abs(away);
  if (ms < 2 * second) return away > second / 2 ? "in a second" : "just now";
  const text =
    ms < minute
      ? `${Math.round(ms / second)} s`
      : ms < hour
        ? `${Math.round(ms / minute)} min`
        : ms < 2 * day
          ? `${Math.round(ms / hour)} h`
          : `${new Intl.NumberFormat("en").format(Math.round(ms / day))} days`;
  return away > 0 ? `in ${text}` : `${text} ago`;
}

/** Such as "12 ms", "3.4 s", "2 min 5 s", "3 days 4 h". */
export function duration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(1).replace(".0", "")} s`;
  if (ms < minute) return `${Math.round(ms / second)} s`;
  const [largeMs, large, smallMs, small] =
    ms < hour
      ? ([minute, "min", second, "s"] as const)
      : ms < day
        ? ([hour, "h", minute, "min"] as const)
        : ([day, "d", hour, "h"] as const);
  const whole = Math.floor(ms / largeMs);
  const rest = Math.floor((ms % largeMs) / smallMs);
  return rest === 0 ? `${whole} ${large}` : `${whole} ${large} ${rest} ${small}`;
}

/** In the time zone of the reader, to the millisecond, and in UTC. */
export function exactTime(atMs: number): string {
  const at = new Date(atMs);
  const local = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "medium",
    timeStyle: "medium",
  }).format(at);
  return `${local}.${String(at.getMilliseconds()).padStart(3, "0")} (${at.toISOString()})`;
}
