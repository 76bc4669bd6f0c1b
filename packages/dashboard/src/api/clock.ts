/**
 * The present time, as a signal that ticks every second while the page is visible. It follows the
 * clock of the server, because every time on the page is of the server.
 */

import { signal } from "@preact/signals";

/** How far the server's clock is ahead of this machine's. */
let aheadMs = 0;

export const now = signal(Date.now());

/** Takes the header `date` of an answer, which has whole seconds. Small differences are none. */
export function setServerTime(date: string | null): void {
  if (date === null) return;
  const ahead = Date.parse(date) - Date.now();
  if (Math.abs(ahead - aheadMs) < 2_500) return;
  aheadMs = Math.abs(ahead) < 2_500 ? 0 : ahead;
  now.value = Date.now() + aheadMs;
}

setInterval(() => {
  if (!document.hidden) now.value = Date.now() + aheadMs;
}, 1_000);
