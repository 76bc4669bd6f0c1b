/**
 * The next turn of the event loop, when all promises that could be settled have been: one callback
 * for everybody who waits for it. Used by the batcher, the polling loop and the bodies of
 * workflows.
 */

let waiting: (() => void)[] = [];
/** Browsers have no `setImmediate`. Looked up at every call, since tests replace it. */
function later(callback: () => void): void {
  if (typeof setImmediate === "function") setImmediate(callback);
  else setTimeout(callback, 0);
}

/** Calls it in the next turn. */
export function onNextTurn(callback: () => void): void {
  if (waiting.push(callback) > 1) return;
  later(() => {
    const callbacks = waiting;
    waiting = [];
    for (const each of callbacks) each();
  });
}
