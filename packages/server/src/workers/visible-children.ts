/**
 * The children of a run as a worker may see them. A child whose key was taken is answered for by the run
 * that holds the key, which may be anybody's: a token with prefixes is told only that run's id and phase,
 * unless the prefixes allow it. Used by the routes of the worker protocol.
 */

import type { PostgresStore, StoredChild } from "pawl/engine";
import type { Caller } from "../http/auth.js";

export async function shownChildren(
  store: Pick<PostgresStore, "named">,
  caller: Caller,
  children: readonly StoredChild[],
): Promise<StoredChild[]> {
  const holders = children.filter(({ created }) => !created).map(({ runId }) => runId);
  if (!caller.isConfined || holders.length === 0) return [...children];
  const allowed = (await store.named(holders)).filter((run) => caller.allows(run));
  const isAllowed = new Set(allowed.map(({ runId }) => runId));
  return children.map((child) =>
    child.created || isAllowed.has(child.runId) ? child : { ...child, name: "", result: null, error: null },
  );
}
