/**
 * Hides runs that the caller's token may not see from a list of children. If the unique key of a
 * child was taken, the list has the run that holds the key, which may belong to anybody. A token
 * with prefixes sees only the id and phase of such a run, unless its prefixes allow the run. Used
 * by `read-routes.ts`.
 */

import type { PostgresStore, StoredChild } from "pawl/engine";
import type { Caller } from "../http/auth.js";

export async function visibleChildren(
  store: Pick<PostgresStore, "named">,
  caller: Caller,
  children: readonly StoredChild[],
): Promise<StoredChild[]> {
  const holders = children.filter(({ created }) => !created).map(({ runId }) => runId);
  if (!caller.hasPrefixes || holders.length === 0) return [...children];
  const allowed = (await store.named(holders)).filter((run) => caller.allows(run));
  const isAllowed = new Set(allowed.map(({ runId }) => runId));
  return children.map((child) =>
    child.created || isAllowed.has(child.runId) ? child : { ...child, name: "", result: null, error: null },
  );
}
