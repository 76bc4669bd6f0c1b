/**
 * Judges the facts about a database. Each finding says what was found and, if something is
 * wrong, how to fix it. Pure. Used by `examine.ts`.
 */

import { type DatabaseState, type Pooling, type SchemaHealth, type ServerHealth, values } from "pawl/engine";
import { duration, plural, printable } from "./text.js";

export interface Finding {
  /** The name of the check. */
  readonly check: string;
  /** "note": nothing is wrong, but worth knowing. */
  readonly level: "ok" | "note" | "wrong";
  readonly text: string;
  readonly fix?: string;
}

const leastVersion = 150_000;
const mostSkewMs = 1_000;
const manyDead = 100_000;
const muchWalBytes = 1024 ** 3;
const fullPart = 0.9;

export type Problem = readonly [text: string, fix: string];

/** One finding if there are no problems, else one for each problem. */
export function judge(check: string, well: string, problems: readonly Problem[]): Finding[] {
  if (problems.length === 0) return [{ check, level: "ok", text: well }];
  return problems.map(([text, fix]) => ({ check, level: "wrong", text, fix }));
}

const when = (condition: boolean, text: string, fix: string): Problem[] => (condition ? [[text, fix]] : []);

export function judgeServer(server: ServerHealth, pooling: Pooling, patienceMs: number): Finding[] {
  const { settings } = server;
  return [
    ...judge("version", `PostgreSQL ${server.version}`, [
      ...when(
        server.versionNumber < leastVersion,
        `PostgreSQL ${server.version} is older than 15`,
        "upgrade the server to PostgreSQL 15 or later",
      ),
    ]),
    ...judge("writable", "the server accepts writes", [
      ...when(
        server.isStandby || settings["default_transaction_read_only"] === "on",
        server.isStandby ? "the server is a standby and read-only" : "default_transaction_read_only is on",
        server.isStandby
          ? "use the URL of the primary (with several hosts: target_session_attrs=read-write)"
          : "alter role … set default_transaction_read_only = off",
      ),
    ]),
    judgeClock(server),
    judgePooling(pooling),
    ...judgeConnections(server),
    ...judgeDurability(settings),
    ...judge("isolation", "transactions are read committed", [
      ...when(
        settings["default_transaction_isolation"] !== "read committed",
        `default_transaction_isolation is ${settings["default_transaction_isolation"]}: Pawl refuses every call`,
        "alter role … in database … set default_transaction_isolation = 'read committed', for the role of the URL",
      ),
    ]),
    ...judgeOldSnapshots(server, patienceMs),
    ...noteSessions(server),
  ];
}

function noteSessions({ seesSessions }: ServerHealth): Finding[] {
  if (seesSessions) return [];
  const text = "this role cannot see the transactions of other roles: one of them may be old";
  return [
    { check: "transactions", level: "note", text, fix: "grant pg_read_all_stats to the role of the URL" },
  ];
}

/** Only the database's clock decides when a run is due; a wrong clock here only confuses people. */
function judgeClock({ skewMs, skewErrorMs, roundTripMs }: ServerHealth): Finding {
  const ahead = skewMs > 0 ? "ahead of" : "behind";
  const seen = `the clock of the database is ${duration(Math.abs(skewMs))} ${ahead} the local clock`;
  if (Math.abs(skewMs) - skewErrorMs <= mostSkewMs) {
    return { check: "clock", level: "ok", text: `${seen}; a round trip takes ${duration(roundTripMs)}` };
  }
  return {
    check: "clock",
    level: "wrong",
    text: `${seen}; runs are due by the clock of the database`,
    fix: "synchronize both machines with NTP",
  };
}

function judgePooling(pooling: Pooling): Finding {
  const check = "pooler";
  switch (pooling) {
    case "none":
      return { check, level: "ok", text: "no pooler: connections go directly to the server" };
    case "session":
      return {
        check,
        level: "ok",
        text: "a pooler in session mode: each connection has its own server connection",
      };
    case "transaction":
      return { check, level: "ok", text: "a pooler in transaction mode, which Pawl supports" };
    case "statement":
      return {
        check,
        level: "wrong",
        text: "a pooler in statement mode: it allows no transactions, which migrate and step.transaction need",
        fix: "set pool_mode = transaction for this database in the pooler",
      };
  }
}

function judgeConnections({ connections, settings }: ServerHealth): Finding[] {
  const reserved =
    Number(settings["superuser_reserved_connections"] ?? 0) + Number(settings["reserved_connections"] ?? 0);
  const most = Number(settings["max_connections"]) - reserved;
  return judge("connections", `${connections} of ${most} are in use`, [
    ...when(
      connections >= most * fullPart,
      `${connections} of ${most} connections are in use: the next worker may not get one`,
      "raise max_connections, use a pooler in transaction mode, or lower the option pool of the clients (a worker needs up to 6)",
    ),
  ]);
}

function judgeDurability(settings: ServerHealth["settings"]): Finding[] {
  const lost = "a crash of the machine can lose or damage acknowledged writes";
  const found = judge("durability", "acknowledged writes are on disk", [
    ...when(
      settings["fsync"] === "off",
      `fsync is off: ${lost}`,
      "set fsync = on in postgresql.conf and reload",
    ),
    ...when(
      settings["full_page_writes"] === "off",
      `full_page_writes is off: ${lost}`,
      "set full_page_writes = on in postgresql.conf and reload",
    ),
  ]);
  if (settings["synchronous_commit"] !== "off") return found;
  const text =
    "synchronous_commit is off; Pawl switches it on for writes that it acknowledges, your own transactions do not";
  return [...found, { check: "durability", level: "note", text }];
}

/** Old transactions and slots that keep vacuum from cleaning up. */
function judgeOldSnapshots({ transactions, prepared, slots }: ServerHealth, oldMs: number): Finding[] {
  return [
    ...judge(
      "transactions",
      `no transaction is older than ${duration(oldMs)}`,
      transactions.map(({ pid, application, user, state, ageMs }) => [
        `process ${pid} (${printable([application, user].filter((word) => word !== "").join(", "))}) is ` +
          `${state === "" ? "in a transaction" : state} for ${duration(ageMs)}: vacuum cannot clean up rows that ended since`,
        `end it: select pg_terminate_backend(${pid}); to prevent others: idle_in_transaction_session_timeout = '5min'`,
      ]),
    ),
    ...judge(
      "prepared",
      `no prepared transaction is older than ${duration(oldMs)}`,
      prepared.map(({ id, ageMs }) => [
        `the prepared transaction ${printable(id)} is ${duration(ageMs)} old: it keeps its locks and keeps vacuum from cleaning up`,
        `end it: rollback prepared '${printable(id)}'; or commit prepared`,
      ]),
    ),
    ...judge(
      "replication slots",
      "none keeps data for an absent consumer",
      slots
        .filter(
          ({ isActive, xminAge, keptWalBytes }) =>
            !isActive && (xminAge !== null || keptWalBytes > muchWalBytes),
        )
        .map(({ name, keptWalBytes }) => [
          `the slot ${printable(name)} is not in use and keeps ${Math.round(keptWalBytes / 1024 ** 2)} MiB of WAL`,
          `start its consumer, or drop it: select pg_drop_replication_slot('${printable(name)}')`,
        ]),
    ),
  ];
}

export function judgeRuns(
  health: SchemaHealth,
  settings: ServerHealth["settings"],
  lateMs: number,
): Finding[] {
  const { liveWorkers, deadWorkers, unserved, setAside, blockedKeys, schedules, oldestDue } = health;
  const reaper =
    liveWorkers > 0
      ? "a live worker reclaims them within seconds; if not, read the logs of the workers"
      : "start a worker: it reclaims these runs";
  return [
    ...judgeVacuum(health, settings),
    ...judge(
      "workers",
      liveWorkers === 0
        ? "no worker is alive, and no dead worker holds runs"
        : `${plural(liveWorkers, "worker")} alive`,
      deadWorkers.map(({ id, claims, silentMs }) => [
        `worker ${printable(id)} ${silentMs === null ? "is gone" : `sent its last heartbeat ${duration(silentMs)} ago`} and holds ${plural(claims, "run")}`,
        reaper,
      ]),
    ),
    ...judge(
      "definitions",
      "live workers serve every due run",
      unserved.map(({ name, version, queue, runs, dueMs }) => [
        `${plural(runs, "run")} of ${name}@${version} ${runs === 1 ? "waits" : "wait"}, for up to ${duration(dueMs)}, and no live worker serves it` +
          (queue === null ? "" : ` on queue "${queue}"`),
        `start a worker that serves ${name}@${version}, or cancel its runs: pawl runs list --name ${name} --status running`,
      ]),
    ),
    ...judge(
      "set aside",
      "no run is set aside",
      setAside.map(({ runId, name, version, code, message }) => [
        `run ${runId} of ${name}@${version} is set aside, because the database cannot claim it: ${printable(message ?? "")} (${code})`,
        `repair its row and clear bit 8 of hold, or cancel it: pawl runs cancel ${runId}`,
      ]),
    ),
    ...judge(
      "partition keys",
      "every blocked key has a live holder",
      blockedKeys.map(({ key, runs, holder }) => [
        `${plural(runs, "run")} wait${runs === 1 ? "s" : ""} for the key "${printable(key)}", held by ${holder === null ? "nobody" : `run ${holder} of a dead worker`}`,
        "a live worker repairs this within seconds; start one, or read the logs of the workers",
      ]),
    ),
    ...notePauses(health),
    ...judge(
      "schedules",
      "every schedule can start its runs, and their last runs did not fail",
      schedules.map((schedule) => [
        `schedule ${schedule.name}: ${printable(values.problemOf(schedule) ?? "it has recovered meanwhile")}`,
        `look at it: pawl schedules show ${schedule.name}; pause or remove it if you do not need it`,
      ]),
    ),
    ...judge("due runs", `no run is more than ${duration(lateMs)} late`, [
      ...when(
        oldestDue !== null && oldestDue.lateMs > lateMs,
        oldestDue === null
          ? ""
          : `run ${oldestDue.runId} of ${oldestDue.name}@${oldestDue.version} has been due for ${duration(oldestDue.lateMs)} on queue "${oldestDue.queue}"`,
        `run: pawl runs why ${oldestDue?.runId ?? ""}; if all slots are busy, start more workers or raise the option queues of serve`,
      ),
    ]),
  ];
}

/** A pause is no fault, but easily forgotten. */
function notePauses({ pauses, pausedRuns }: SchemaHealth): Finding[] {
  const check = "pauses";
  const notes = pauses.map(({ scope, name, version, by, reason, ageMs }): Finding => {
    const what =
      scope === "queue" ? `queue "${name}"` : `definition ${name}${version === null ? "" : `@${version}`}`;
    const why = reason === null ? "" : `: ${printable(reason)}`;
    const only = version === null ? "" : ` --version ${version}`;
    return {
      check,
      level: "note",
      text: `${what} is paused by ${printable(by)} for ${duration(ageMs)}${why}`,
      fix: `when the reason is gone: pawl ${scope === "queue" ? "queues" : "definitions"} resume ${name}${only}`,
    };
  });
  if (pausedRuns > 0) {
    const text = `${pausedRuns >= 10_000 ? "10,000 or more runs are" : plural(pausedRuns, "run is", "runs are")} paused`;
    notes.push({ check, level: "note", text, fix: "find them: pawl runs list --paused" });
  }
  return notes.length > 0 ? notes : [{ check, level: "ok", text: "nothing is paused" }];
}

function judgeVacuum({ tables }: SchemaHealth, settings: ServerHealth["settings"]): Finding[] {
  const isOff = settings["autovacuum"] === "off" || settings["track_counts"] === "off";
  return judge("autovacuum", "on, and it keeps up", [
    ...when(
      isOff,
      `${settings["autovacuum"] === "off" ? "autovacuum" : "track_counts"} is off: Pawl's tables grow with every step`,
      "set autovacuum = on and track_counts = on in postgresql.conf and reload",
    ),
    ...tables
      .filter(({ isAutovacuumOff }) => isAutovacuumOff)
      .map(({ name }): Problem => [
        `autovacuum is off for the table ${name}`,
        `alter table ${name} reset (autovacuum_enabled)`,
      ]),
    ...tables
      .filter(({ live, dead }) => dead > manyDead && dead > live)
      .map(({ name, live, dead, vacuumedAt }): Problem => [
        `${name} has ${dead} dead rows beside ${live} live ones, last vacuumed ${vacuumedAt ?? "never"}`,
        `end old transactions first; then: vacuum (analyze) ${name}; if the rows return, raise autovacuum_max_workers`,
      ]),
  ]);
}

/** Whether this is the database that was migrated, and whether it is held. */
export function judgeState({ isCopy, isHeld }: DatabaseState): Finding[] {
  return [
    ...judge("identity", "this is the database that was migrated or adopted", [
      ...when(
        isCopy,
        "this database is a copy, a fork or a restored backup: runs may repeat here what they did in the original",
        isHeld
          ? "to work with it: pawl fork adopt"
          : "to work with it: pawl fork adopt; else hold it: pawl hold",
      ),
    ]),
    ...(isHeld
      ? [
          {
            check: "held",
            level: "note" as const,
            text: "this database is held: workers execute nothing in it",
            fix: "to resume work: pawl fork adopt, or pawl hold --release",
          },
        ]
      : []),
  ];
}
