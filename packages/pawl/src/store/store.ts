/**
 * Every type of the boundary under one name, for files that need several of its parts. Types only.
 */

export type * from "./client-store.js";
export type * from "./database-state.js";
export type * from "./runs.js";
export type * from "./schedule-store.js";
export type * from "./transitions.js";
export type * from "./worker-store.js";
