/** Failed runs in groups that share a cause: definition, error code and step. Pure. */

import type { Run } from "../api/types.js";

export interface FailureGroup {
  readonly name: string;
  /** The code of the error, or its name. */
  readonly code: string;
  readonly step: string | null;
  readonly count: number;
  /** The message of the latest. */
  readonly message: string;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly lastRunId: string;
}

/** Groups these runs, which are newest first; the largest group comes first. */
export function groupFailures(runs: readonly Run[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const { name, error, runId, startedAt, completedAt } of runs) {
    if (error === null) continue;
    const code = error.code ?? error.name;
    const step = error.step ?? null;
    const key = JSON.stringify([name, code, step]);
    const at = completedAt ?? startedAt;
    const group = groups.get(key);
    groups.set(
      key,
      group === undefined
        ? { name, code, step, count: 1, message: error.message, firstAt: at, lastAt: at, lastRunId: runId }
        : {
            ...group,
            count: group.count + 1,
            firstAt: at < group.firstAt ? at : group.firstAt,
            lastAt: at > group.lastAt ? at : group.lastAt,
          },
    );
  }
  return [...groups.values()].toSorted((a, b) => b.count - a.count);
}
