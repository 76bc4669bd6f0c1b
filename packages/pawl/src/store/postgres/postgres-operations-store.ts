/**
 * The calls of operators to PostgreSQL: reruns, bulk operations, the action log. This file only
 * encodes and decodes; each SQL function states its guarantees in its header.
 */

import type { Actor, RerunRequest, RerunVerdict } from "../client-store.js";
import { column } from "./literals.js";
import { PostgresQueueStore } from "./postgres-queue-store.js";

export class PostgresOperationsStore extends PostgresQueueStore {
  async rerun(
    runId: string,
    { from, input, state, version }: RerunRequest,
    by: Actor,
  ): Promise<RerunVerdict> {
    const [row] = await this.call<{
      verdict: RerunVerdict["kind"];
      id: string;
      name: string;
      version: number;
      queue: string;
      steps: string | null;
    }>("rerun", [column([runId], (id) => id), from, input, state, version, JSON.stringify(by)]);
    const { verdict, id, steps, ...run } = row!;
    switch (verdict) {
      case "rerun":
        return { kind: verdict, runId: id, name: run.name, version: run.version, queue: run.queue };
      case "unknown_step":
      case "waited_for_children":
      case "signals_lost":
        return { kind: verdict, steps: steps === null ? [] : (JSON.parse(steps) as string[]) };
      case "not_found":
      case "active":
      case "no_steps":
      case "no_state":
      case "no_input":
        return { kind: verdict };
    }
  }
}
