/**
 * Reads the facts about the health of a database: its server and its runs. It only reads, in its
 * own transactions that end after 10 s, and scans no more than it has to. Looking at a sick
 * database must not make it worse. `pawl doctor` calls it.
 */

import type {
  BlockedKeyFact,
  BulkFact,
  DeadWorkerFact,
  DueFact,
  LimitFact,
  OpenTransactionFact,
  PauseFact,
  PreparedFact,
  SchemaHealth,
  ServerHealth,
  SetAsideFact,
  SlotFact,
  TableFact,
  UnservedFact,
} from "../health.js";
import type { ScheduleHealth } from "../schedule-store.js";
import { type Address, openClient, type Opened, types } from "./database.js";
import { explain } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { explainVersion, readVersion } from "./version.js";

type Query = <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]>;

const settingNames = [
  "autovacuum",
  "default_transaction_isolation",
  "default_transaction_read_only",
  "fsync",
  "full_page_writes",
  "max_connections",
  "reserved_connections",
  "superuser_reserved_connections",
  "synchronous_commit",
  "track_counts",
];

const looks = 5;

const claimable = "case when r.status in ('runnable', 'awaiting_signal') then r.hold = 0 else false end";
const firstLine = (where: string): string =>
  `select r.queue, r.name, r.version, r.priority from runs r where ${claimable} ${where}
    order by r.queue, r.name, r.version, r.priority limit 1`;

/**
 * Reads the beginning of each line of runs_claim. A skip scan visits the queues, definitions and
 * priorities that have a claimable run. It reads the first 200 runs of each, and no queue messages,
 * whose names begin with "~".
 */
const lines = `with recursive line(queue, name, version, priority, n) as (
    (select f.*, 1 from (${firstLine("")}) f)
  union all
    select f.*, line.n + 1 from line cross join lateral (${firstLine(
      "and (r.queue, r.name, r.version, r.priority) > (line.queue, line.name, line.version, line.priority)",
    )}) f where line.n < 1000),
  due as (
    select d.id, d.name, d.version, d.queue, d.eligible_at from line l cross join lateral (
      select r.id, r.name, r.version, r.queue, r.eligible_at from runs r
      where r.queue = l.queue and r.name = l.name and r.version = l.version and r.priority = l.priority and ${claimable}
      order by r.eligible_at, r.id limit 200) d
    where l.name < '~' and d.eligible_at <= clock())`;

/**
 * Reads the state of the server, with or without a schema of Pawl. Reports only transactions older
 * than `oldMs`.
 */
export function readServerHealth(address: Address, { oldMs }: { oldMs: number }): Promise<ServerHealth> {
  return reading(address, async (query) => {
    const clock = await compareClocks(query);
    const [server] = await query<{
      number: number;
      version: string;
      standby: boolean;
      connections: number;
      sees: boolean;
    }>(
      `select current_setting('server_version_num')::int4 as number, current_setting('server_version') as version,
        pg_is_in_recovery() as standby,
        (select count(*)::int4 from pg_stat_activity
          where backend_type = 'client backend' or (backend_type is null and usesysid is not null)) as connections,
        pg_has_role('pg_read_all_stats', 'usage') as sees`,
    );
    const settings = await query<{ name: string; value: string }>(
      "select name, current_setting(name) as value from pg_settings where name = any ($1)",
      [settingNames],
    );
    return {
      versionNumber: server!.number,
      version: server!.version,
      isStandby: server!.standby,
      ...clock,
      settings: Object.fromEntries(settings.map(({ name, value }) => [name, value])),
      connections: server!.connections,
      seesSessions: server!.sees,
      transactions: await query<OpenTransactionFact>(
        `select a.pid, coalesce(a.application_name, '') as application, coalesce(a.usename, '') as user, coalesce(a.state, '') as state,
          extract(epoch from clock_timestamp() - a.xact_start)::float8 * 1000 as "ageMs"
        from pg_stat_activity a
        where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
          and a.xact_start < clock_timestamp() - $1 * interval '1 millisecond'
        order by a.xact_start limit 10`,
        [oldMs],
      ),
      prepared: await query<PreparedFact>(
        `select p.gid as id, extract(epoch from clock_timestamp() - p.prepared)::float8 * 1000 as "ageMs"
        from pg_prepared_xacts p where p.database = current_database()
          and p.prepared < clock_timestamp() - $1 * interval '1 millisecond'
        order by p.prepared limit 10`,
        [oldMs],
      ),
      slots: await query<SlotFact>(
        `select s.slot_name as name, s.active as "isActive", age(s.xmin) as "xminAge",
          coalesce(case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) end, 0)::float8 as "keptWalBytes"
        from pg_replication_slots s order by s.slot_name limit 100`,
      ),
    };
  });
}

/** Throws unless the database has the schema version that this release needs. */
export function requireSchema(address: Address): Promise<number> {
  return reading(address, async (query) => {
    const found = await readVersion(async (text) => ({ rows: await query(text) }), address.schema);
    const problem = explainVersion(found, address.schema);
    if (problem !== null) throw problem;
    return found.version;
  });
}

/**
 * Reads the state of the runs. All facts judge workers at one time, the transaction's, so no worker
 * is alive in one fact and dead in the next.
 */
export function readSchemaHealth(address: Address): Promise<SchemaHealth> {
  return reading(address, async (query) => {
    await query(`set local search_path = ${quoteName(address.schema)}, pg_catalog`);
    const [alive] = await query<{ n: number }>(
      "select count(*)::int4 as n from workers w where w.seen_at + w.lease > transaction_timestamp()",
    );
    const [oldestDue] = await query<DueFact>(
      `${lines} select d.id::text as "runId", d.name, d.version, d.queue,
        ms_until(clock(), d.eligible_at) as "lateMs"
      from due d where is_served(d.name, d.version, d.queue) and not is_paused(d.queue, d.name, d.version) order by d.eligible_at, d.id limit 1`,
    );
    return {
      tables: await findTables(query, address.schema),
      liveWorkers: alive!.n,
      deadWorkers: await findDeadWorkers(query),
      unserved: await findUnserved(query),
      setAside: await findSetAside(query),
      blockedKeys: await findBlockedKeys(query),
      pauses: await findPauses(query),
      pausedRuns: await countPausedRuns(query),
      schedules: await findTroubledSchedules(query),
      limits: await findLimits(query),
      bulk: await findBulk(query),
      oldestDue: oldestDue ?? null,
    };
  });
}

function findTables(query: Query, schema: string): Promise<TableFact[]> {
  return query(
    `select c.relname as name, s.n_live_tup::float8 as live, s.n_dead_tup::float8 as dead,
      greatest(s.last_vacuum, s.last_autovacuum)::text as "vacuumedAt",
      coalesce('autovacuum_enabled=false' = any (c.reloptions) or 'autovacuum_enabled=off' = any (c.reloptions), false) as "isAutovacuumOff"
    from pg_class c join pg_stat_all_tables s on s.relid = c.oid
    where c.relnamespace = to_regnamespace($1) and c.relkind = 'r' order by c.relname`,
    [quoteName(schema)],
  );
}

/**
 * A skip scan over the holders in runs_holders: one lookup per worker, however many claims it has.
 */
function findDeadWorkers(query: Query): Promise<DeadWorkerFact[]> {
  return query(
    `with recursive holder(id, n) as (
        (select r.locked_by, 1 from runs r where r.locked_by is not null order by r.locked_by limit 1)
      union all
        select (select r.locked_by from runs r where r.locked_by > holder.id order by r.locked_by limit 1), holder.n + 1
        from holder where holder.id is not null and holder.n < 10000)
    select h.id, extract(epoch from transaction_timestamp() - w.seen_at)::float8 * 1000 as "silentMs",
      (select count(*)::int4 from (select 1 from runs r where r.locked_by = h.id limit 10000) c) as claims
    from holder h left join workers w on w.id = h.id
    where h.id is not null and (w.id is null or w.seen_at + w.lease <= transaction_timestamp())
    order by h.id limit 20`,
  );
}

/**
 * Finds runs whose definition no worker has registered, and due runs that no live worker serves.
 */
function findUnserved(query: Query): Promise<UnservedFact[]> {
  return query(
    `${lines}, waiting as (
      select r.name, r.version, r.queue, r.eligible_at from runs r where (r.hold & 10) <> 0 and (r.hold & 2) <> 0
    union all
      select d.name, d.version, d.queue, d.eligible_at from due d)
    select g.name, g.version, g.queue, g.runs, g."dueMs" from (
      select w.name, w.version, w.queue, count(*)::int4 as runs,
        greatest(0, ms_until(clock(), min(w.eligible_at))) as "dueMs"
      from waiting w group by w.name, w.version, w.queue) g
    where not is_served(g.name, g.version, g.queue) order by g.runs desc, g.name, g.version limit 20`,
  );
}

/** Finds runs that cannot be claimed, through runs_unplaced. */
function findSetAside(query: Query): Promise<SetAsideFact[]> {
  return query(
    `select r.id::text as "runId", r.name, r.version, r.error ->> 'code' as code, r.error ->> 'message' as message
    from runs r where (r.hold & 10) <> 0 and (r.hold & 8) <> 0 order by r.name, r.version, r.id limit 20`,
  );
}

/**
 * Checks the first 1,000 keys that runs wait for, by a skip scan over runs_blocked. Finds the keys
 * that no live worker holds and whose first run cannot be claimed.
 */
function findBlockedKeys(query: Query): Promise<BlockedKeyFact[]> {
  return query(
    `with recursive blocked(key, n) as (
        (select r.partition_key, 1 from runs r where (r.hold & 1) <> 0 order by r.partition_key limit 1)
      union all
        select (select r.partition_key from runs r where (r.hold & 1) <> 0 and r.partition_key > blocked.key
          order by r.partition_key limit 1), blocked.n + 1
        from blocked where blocked.key is not null and blocked.n < 1000)
    select b.key, h.id::text as holder,
      (select count(*)::int4 from (select 1 from runs r where (r.hold & 1) <> 0 and r.partition_key = b.key limit 10000) c) as runs
    from blocked b left join lateral (
      select r.id, r.locked_by, r.lease_expires_at from runs r
      where r.partition_key = b.key and (r.locked_by is not null or r.lease_expires_at is not null) limit 1) h on true
    left join lateral (select r.hold from runs r where r.id = first_of_key(b.key, clock()) limit 1) f on true
    where b.key is not null and case when h.id is null then f.hold <> 0 and (f.hold & 16) = 0 else h.lease_expires_at is null and not exists (
      select 1 from workers w where w.id = h.locked_by and w.seen_at + w.lease > transaction_timestamp()) end
    order by b.key limit 20`,
  );
}

function findPauses(query: Query): Promise<PauseFact[]> {
  return query(
    `select p.scope, p.name, nullif(p.version, 0) as version, p.paused_by as by, p.reason,
      ms_until(clock(), p.paused_at) as "ageMs"
    from pauses p order by p.paused_at, p.scope, p.name, p.version limit 20`,
  );
}

/** Counts through extras_paused. */
async function countPausedRuns(query: Query): Promise<number> {
  const [row] = await query<{ runs: number }>(
    "select count(*)::int4 as runs from (select 1 from extras x where x.paused is not null limit 10000) p",
  );
  return row!.runs;
}

/** Finds schedules with a problem, as get_schedules answers them. Reads all schedules. */
async function findTroubledSchedules(query: Query): Promise<ScheduleHealth[]> {
  const rows = await query<{ schedule: string }>(
    `select (g.schedules::jsonb -> 0)::text as schedule from (
      select s.name from schedules s where s.due_at is not null and (s.failures > 0 or s.due_at < clock() - interval '1 minute'
        or (select r.status from runs r where r.id = s.last_run_id) = 'failed'
        or not exists (select 1 from workers w, unnest(w.serves) d(served)
          where w.seen_at + w.lease > transaction_timestamp() and (d.served = (s.run ->> 'name') || '@' || (s.run ->> 'version')
            or (s.run ->> 'version' is null and starts_with(d.served, (s.run ->> 'name') || '@')))))
      order by s.name limit 20) t
    cross join lateral get_schedules(t.name, null, 1) g`,
  );
  return rows.map(({ schedule }) => JSON.parse(schedule) as ScheduleHealth);
}

/** A skip scan over the keys of an index of slots: at most 1,000. */
const keysOf = (name: string, where: string): string =>
  `${name}(key, n) as (
      (select s.concurrency, 1 from slots s where ${where} order by s.concurrency limit 1)
    union all
      select (select s.concurrency from slots s where ${where} and s.concurrency > ${name}.key
        order by s.concurrency limit 1), ${name}.n + 1
      from ${name} where ${name}.key is not null and ${name}.n < 1000)`;

/** Keys whose first run has to wait, longest first, and keys that runs hold although nobody has set the limit. */
async function findLimits(query: Query): Promise<LimitFact[]> {
  const rows = await query<Omit<LimitFact, "holders"> & { holders: string | null }>(
    `with recursive ${keysOf("waiting", "s.slot = 0")}, ${keysOf("held", "s.slot > 0")}
    select k.key, l.concurrent::int4 as concurrent, h.held, h.holders, h.dead, f."waitingMs"
    from (select w.key from waiting w union select h.key from held h) k
    left join limits l on l.name = split_part(k.key, ':', 1)
    cross join lateral (
      select count(*)::int4 as held, array_to_string((array_agg(s.run_id::text order by s.slot))[1 : 5], ' ') as holders,
        count(*) filter (where not exists (select 1 from workers w
          where w.id = (select r.locked_by from runs r where r.id = s.run_id) and w.seen_at + w.lease > transaction_timestamp()))::int4 as dead
      from (select t.run_id, t.slot from slots t where t.concurrency = k.key and t.slot > 0 limit 1000) s) h
    cross join lateral (
      select max(ms_until(clock(), r.eligible_at)) as "waitingMs" from first_in_lines(k.key, 1) f
      join runs r on r.id = f.id
      where (r.hold & 32) <> 0 and r.eligible_at <= clock() and not is_paused(r.queue, r.name, r.version)) f
    where k.key is not null and (f."waitingMs" is not null or l.concurrent is null)
    order by f."waitingMs" desc nulls last, k.key limit 20`,
  );
  return rows.map((row) => ({ ...row, holders: row.holders?.split(" ") ?? [] }));
}

/** Operations that are open, and those that failed within a day. */
function findBulk(query: Query): Promise<BulkFact[]> {
  return query(
    `select o.id::text as id, o.action, o.actor ->> 'who' as who, o.status, o.counted::float8 as counted,
      (o.done + o.skipped + o.failed)::float8 as through, o.error,
      (select count(*)::int4 from (select 1 from bulk_results b where b.operation_id = o.id and b.outcome is null limit 10000) p) as locked,
      ms_until(clock(), coalesce(o.completed_at, o.worked_at, o.started_at)) as "idleMs"
    from (
      (select t.* from bulk_operations t where t.completed_at is null order by t.id limit 20)
      union all
      (select t.* from (select b.* from bulk_operations b order by b.id desc limit 1000) t
        where t.status = 'failed' and t.completed_at > clock() - interval '1 day')) o
    order by o.id limit 20`,
  );
}

/**
 * Compares the clocks. Assumes that the database read its clock in the middle of the quickest of a
 * few round trips.
 */
async function compareClocks(
  query: Query,
): Promise<Pick<ServerHealth, "roundTripMs" | "skewMs" | "skewErrorMs">> {
  let best = { roundTripMs: Number.POSITIVE_INFINITY, skewMs: 0, skewErrorMs: 0 };
  for (let look = 0; look < looks; look++) {
    const [beganAt, began] = [Date.now(), performance.now()];
    const [row] = await query<{ ms: number }>(
      "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
    );
    const roundTripMs = performance.now() - began;
    if (roundTripMs >= best.roundTripMs) continue;
    best = { roundTripMs, skewMs: row!.ms - (beganAt + roundTripMs / 2), skewErrorMs: roundTripMs / 2 };
  }
  return best;
}

async function reading<T>(address: Address, read: (query: Query) => Promise<T>): Promise<T> {
  let opened: Opened | undefined;
  try {
    opened = await openClient(address.url);
    const { client } = opened;
    await client.query("begin isolation level read committed read only");
    await client.query("set local statement_timeout = '10s'");
    const found = await read(async <Row>(text: string, values: readonly unknown[] = []) => {
      const { rows } = await client.query({ text, values: values as unknown[], types });
      return rows as Row[];
    });
    await client.query("commit");
    return found;
  } catch (error) {
    throw explain(error, address);
  } finally {
    await opened?.end();
  }
}
