/** Sends heartbeats on a connection of their own. */

import type { HeartbeatAnswer, HeartbeatConnection } from "../heartbeats.js";
import { type Address, openClient, types } from "./database.js";
import { quoteName } from "./literals.js";
import { explainBreaking } from "./version.js";

export async function openPostgresHeartbeats(
  { url, schema }: Address,
  connectMs: number,
): Promise<HeartbeatConnection> {
  const { client, end } = await openClient(url, { connectionTimeoutMillis: connectMs });
  const text = `select * from ${quoteName(schema)}.beat($1, $2)`;
  return {
    beat: async (workerId, since, timeoutMs) => {
      const query = { text, values: [workerId, since], types, query_timeout: timeoutMs };
      const { rows } = await client.query<BeatRow>(query);
      return toHeartbeatAnswer(rows[0]);
    },
    end,
  };
}

export interface BeatRow {
  alive: boolean;
  cancelled: string | null;
  held: string | null;
  database_held: boolean | null;
  server_timeline: string | null;
  breaking: number | null;
}

export function toHeartbeatAnswer(row: BeatRow | undefined): HeartbeatAnswer {
  return {
    alive: row?.alive === true,
    cancelled: claimsOf(row?.cancelled ?? "{}"),
    held: row?.held ? claimsOf(row.held) : null,
    databaseHeld: row?.database_held === true,
    timeline: row?.server_timeline ?? null,
    schemaProblem: explainBreaking(row?.breaking ?? 0),
  };
}

export function claimsOf(json: string): NonNullable<HeartbeatAnswer["held"]> {
  return JSON.parse(json) as Record<string, string>;
}
