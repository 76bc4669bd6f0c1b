/**
 * Examines a database: reads the facts about the server and the schema, and judges them. Only reads,
 * on a connection of its own. Used by `pawl doctor` and `GET /v1/doctor`.
 */

import { databaseState } from "pawl";
import { database as databases, type SchemaHealth } from "pawl/engine";
import { type Finding, judgeRuns, judgeServer, judgeState } from "./findings.js";
import { judgeBulk, judgeLimits } from "./operating-findings.js";

interface Address {
  readonly url: string;
  readonly schema: string;
}

export interface ExamineOptions {
  /** How old a transaction and how late a run may be. */
  readonly patienceMs: number;
  /** An error in one line. */
  readonly describe: (error: unknown) => string;
}

/** All findings, those that are well too. A check that cannot run is a finding. */
export async function examineDatabase(address: Address, options: ExamineOptions): Promise<Finding[]> {
  const { patienceMs, describe } = options;
  const findings: Finding[] = [];
  const attempt = async <T>(check: string, ask: () => Promise<T>, fix: string): Promise<T | undefined> => {
    try {
      return await ask();
    } catch (error) {
      findings.push({ check, level: "wrong", text: describe(error), fix });
      return undefined;
    }
  };
  const unreachable = "check host, port, user, password and database of the URL, and that the server runs";
  const migrate = "run: pawl migrate, with the same URL and schema";
  const server = await attempt(
    "connection",
    () => databases.readServerHealth(address, { oldMs: patienceMs }),
    unreachable,
  );
  if (server === undefined) return findings;
  findings.push({ check: "connection", level: "ok", text: databases.describeAddress(address.url) });
  const pooling = await attempt("pooler", () => databases.findPooling(address), unreachable);
  findings.push(...judgeServer(server, pooling ?? "none", patienceMs));
  const version = await attempt("schema", () => databases.requireSchema(address), migrate);
  if (version === undefined) return findings;
  findings.push({
    check: "schema",
    level: "ok",
    text: `"${address.schema}" is at version ${version}, which this release needs`,
  });
  const state = await attempt("identity", () => databaseState(address), migrate);
  if (state !== undefined) findings.push(...judgeState(state));
  const runs = await attempt(
    "runs",
    () => databases.readSchemaHealth(address),
    "grant the role of the URL its rights on the schema: pawl migrate --grant <role>",
  );
  if (runs !== undefined) {
    findings.push(
      ...judgeRuns(runs, server.settings, patienceMs),
      ...judgeLimits(runs, patienceMs),
      ...judgeBulk(runs, patienceMs),
    );
  }
  return findings;
}

/** Whether the caller may see this definition, limit or queue. */
type Allows = (what: { readonly name?: string | null; readonly queue?: string | null }) => boolean;

/**
 * The findings about runs that a caller with prefixes may see: none about the server, about workers
 * and keys of others, or about runs of other names and queues.
 */
export async function examineRuns(
  address: Address,
  { patienceMs }: Pick<ExamineOptions, "patienceMs">,
  allows: Allows,
): Promise<Finding[]> {
  const visible = visibleTo(await databases.readSchemaHealth(address), allows);
  return judgeRuns(visible, {}, patienceMs).filter(({ check }) => !aboutOthers.has(check));
}

const aboutOthers = new Set(["autovacuum", "workers", "partition keys", "schedules"]);

function visibleTo(health: SchemaHealth, allows: Allows): SchemaHealth {
  const { unserved, setAside, pauses, oldestDue } = health;
  return {
    tables: [],
    liveWorkers: health.liveWorkers,
    deadWorkers: [],
    unserved: unserved.filter(({ name, queue }) => allows(queue === null ? { name } : { name, queue })),
    setAside: setAside.filter(({ name }) => allows({ name })),
    blockedKeys: [],
    pauses: pauses.filter(({ scope, name }) =>
      allows(scope === "queue" ? { queue: name, name: null } : { name }),
    ),
    pausedRuns: 0,
    schedules: [],
    limits: [],
    bulk: [],
    oldestDue: oldestDue !== null && allows(oldestDue) ? oldestDue : null,
  };
}
