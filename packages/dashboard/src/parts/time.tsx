/** A time: relative, with the exact one on hover; and how long something took. */

import type { JSX } from "preact";
import { now } from "../api/clock.js";
import { duration, exactTime, relativeTime } from "../format/time.js";

export function Time({ at }: { at: string | number }): JSX.Element {
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
      {relativeTime(ms, now.value)}
    </time>
  );
}

/** From one time to another; until now if it has not ended. */
export function Took({ from, to }: { from: string; to: string | null }): JSX.Element {
  const end = to === null ? now.value : Date.parse(to);
  return <span class="number">{duration(Math.max(0, end - Date.parse(from)))}</span>;
}
