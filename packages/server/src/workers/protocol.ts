/**
 * Shared by all routes of the worker protocol. The library's `store/http` calls them, and so do
 * workers in other languages. Each route makes one call to the database and decides nothing: the
 * claim id, made by the worker, is the proof that it holds the run, and the guards in the database
 * check it.
 */

import type { FastifyRequest } from "fastify";
import { InvalidOption, Unavailable } from "pawl";
import { databaseErrors, type PostgresStore } from "pawl/engine";
import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import type { Waiters } from "./waiters.js";

/** The arguments of the functions that add routes. */
export interface Protocol {
  readonly app: App;
  readonly backend: Backend;
  readonly waiters: Waiters;
}

/** A batch of commits with their states. JSON that is sent as a string grows by its escapes. */
const bodyLimit = 64 * 1024 * 1024;

/** The options of every route of the protocol. */
export const route = { config: { scope: "worker", prefixes: "checked" }, bodyLimit } as const;
export const tags = ["workers"];

/**
 * The store for the token of this request: it reaches the token's own workers and their claims
 * only.
 */
export function storeOf({ engine }: Backend, { caller }: FastifyRequest): PostgresStore {
  return engine.store.ownedBy(caller.tokenName);
}

/** Turns a value that the database cannot store into an error of the caller, not an outage. */
export async function refuseBadValues<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const state = error instanceof Unavailable ? databaseErrors.sqlState(error.cause) : undefined;
    if (state !== undefined && /^2[23]/.test(state)) {
      throw new InvalidOption(`the database refuses a value: ${(error as Error).message}`, { cause: error });
    }
    throw error;
  }
}
