/**
 * The program of the heartbeat thread. `scripts/generate.js` makes the module from
 * `heartbeat/thread-main.ts` and everything that it imports.
 */

/** A CommonJS script that needs only Node's own modules. */
export declare const threadSource: string;
