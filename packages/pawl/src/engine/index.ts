/**
 * `pawl/engine`: what `@pawl/server` needs beside the public API. For tools that serve runs another
 * way; it may change with every release.
 */

/**
 * Opens the engine on a database: store, starts, results, sweeps, metrics, hints for remote
 * workers.
 */
export { type Engine, type EngineOptions, openEngine, type StartContext } from "./engine.js";
/** Says who acts, for the action log. */
export { actingAs } from "../operate/actor.js";
/** Signs a delivery to a URL: the headers that `verifyDelivery` checks. */
export { type Delivery, signDelivery } from "./sign-delivery.js";
/** Where the next claim of a queue begins. Keep one per queue and set of definitions. */
export { ClaimCursor } from "../worker/claim-cursor.js";
/** The one polling loop: hints, due times, growing intervals, retries during an outage. */
export { type Polled, PollLoop } from "../timing/poll.js";
/** Runs a few calls at once; the others wait for their turn, in order. */
export { Lanes } from "../timing/slow-lanes.js";
/** Reads and shows values: JSON, durations, definitions, phases. */
export * as values from "./values.js";
/**
 * Checks options and names; each throws `InvalidOption` with what was given and what is allowed.
 */
export * as check from "./check.js";
/** Finds a database, describes its address, and reads how healthy it is. */
export * as database from "./database.js";
/** Classifies errors of the database. */
export * as databaseErrors from "./database-errors.js";

export type { Located } from "../api/locate.js";
export type { Emitter, Events } from "../observe/events.js";
export type { Hub, LocalWorker } from "../local/hub.js";
export type { PostgresStore } from "../store/postgres/postgres-store.js";
export type { HeartbeatAnswer } from "../store/heartbeats.js";
export type * from "../store/health.js";
export type * from "../store/journal.js";
export type * from "../store/queue-store.js";
export type * from "../store/reports/changes.js";
export type * from "../store/store.js";
