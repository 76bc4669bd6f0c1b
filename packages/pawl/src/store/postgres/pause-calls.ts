/**
 * The calls of the store about pauses, on PostgreSQL. Only encodes and decodes. Used by the client
 * store.
 */

import type { PausedRuns, PauseStore, StoredPause } from "../pauses.js";
import { column } from "./literals.js";
import { toClaimable } from "./rows.js";

interface PausedRow {
  id: string;
  verdict: "paused" | "resumed" | "already" | "ended" | "not_found" | "busy";
  status: PausedRuns["runs"][number]["phase"];
  name: string | null;
  claimable?: string | null;
}

export function pauseCalls(
  call: <Row>(name: string, values: readonly unknown[]) => Promise<Row[]>,
): PauseStore {
  return {
    async pauseRuns(runIds, { by, reason }) {
      const ids = column(runIds, (id) => id);
      return toPausedRuns(await call<PausedRow>("pause_runs", [ids, by, reason]));
    },
    async resumeRuns(runIds) {
      return toPausedRuns(await call<PausedRow>("resume_runs", [column(runIds, (id) => id)]));
    },
    async addPause({ scope, name, version }, { by, reason }) {
      const given = [scope, name, version, by, reason];
      const [row] = await call<{ add_pause: boolean }>("add_pause", given);
      return row!.add_pause;
    },
    async removePauses({ scope, name, version }) {
      const [row] = await call<{ changed: boolean; still: boolean }>("remove_pauses", [scope, name, version]);
      return row!;
    },
    async pauses() {
      const rows = await call<{
        scope: StoredPause["scope"];
        name: string;
        version: number | null;
        paused_by: string;
        reason: string | null;
        paused_at: string;
      }>("list_pauses", []);
      return rows.map(({ scope, name, version, paused_by: by, reason, paused_at: at }) => {
        return { scope, name, version, by, reason, since: new Date(at) };
      });
    },
  };
}

function toPausedRuns(rows: readonly PausedRow[]): PausedRuns {
  return {
    runs: rows.map(({ id, verdict, status, name }) => ({
      runId: id,
      verdict: verdict === "paused" || verdict === "resumed" ? "changed" : verdict,
      phase: status,
      name,
    })),
    claimable: toClaimable(rows[0]?.claimable ?? null),
  };
}
