/**
 * The next turn of the event loop, when all promises that could be settled have been: one callback for everybody who waits for it.
 * Used by the bodies of workflows, which are given one thing a turn.
 */

let waiting: (() => void)[] = [];

/** Calls it in the next turn. */
export function onNextTurn(callback: () => void): void {
  if (waiting.push(callback) > 1) return;
  setImmediate(() => {
    const callbacks = waiting;
    waiting = [];
    for (const each of callbacks) each();
  });
}
