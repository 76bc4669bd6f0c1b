/**
 * What must hold after any fault, once everything is quiet. Each invariant is a sentence and a look for what breaks it: rows of the
 * database, of the ledger of effects (another server) and the client's history. None looks at the engine's own idea of itself.
 */

import type { Acknowledged, History } from "./load.js";

type Rows = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>;

export interface Evidence {
  /** The database under test, and the ledger of effects. */
  readonly sql: Rows;
  readonly ledger: Rows;
  readonly history: History;
  /** What had ended when somebody looked in between: run → what was seen. */
  readonly seenEnds: ReadonlyMap<string, string>;
}

export interface Invariant {
  readonly says: string;
  /** What breaks it; nothing, if it holds. */
  broken(evidence: Evidence): Promise<unknown[]>;
}

const bySql = (says: string, text: string): Invariant => ({ says, broken: ({ sql }) => sql(text) });

/** How a run ended, as text. */
export const endOf = `status || coalesce(result::text, '') || coalesce(error::text, '') || completed_at`;

const live = `status not in ('done', 'failed', 'cancelled')`;

export const invariants: readonly Invariant[] = [
  {
    says: "every acknowledged start exists, once, under its key and in its version",
    broken: async ({ sql, history }) => {
      const rows = await sql<{ id: string; idempotency_key: string; version: number; name: string }>(
        "select id, idempotency_key, version, name from runs where idempotency_key is not null",
      );
      const byKey = new Map(rows.map((row) => [row.idempotency_key, row]));
      return history.started.filter(({ key, runId, definition }) => {
        const row = byKey.get(key);
        return row?.id !== runId || row.version !== definition.version || row.name !== definition.name;
      });
    },
  },
  {
    says: "self-healing: everything that was started has ended, with the result that it has without faults",
    broken: async ({ sql, history }) => {
      const rows = await sql<{ id: string; status: string; result: unknown; error: unknown }>(
        "select id, status, result, error from runs",
      );
      const byId = new Map(rows.map((row) => [row.id, row]));
      return history.started
        .filter(({ runId, definition, expected }) => {
          const row = byId.get(runId);
          return row?.status !== "done" || !isExpected(definition.name, row.result, expected);
        })
        .map(({ key, runId, expected }) => ({ key, runId, expected, is: byId.get(runId) }));
    },
  },
  bySql(
    "no orphan: what is open is open for a reason that ends by itself",
    `
    select id, name, status, hold, locked_by, children_pending from runs r where ${live} and not (
      (status = 'runnable' and hold = 0)
      or (status = 'runnable' and hold & 1 = 1 and exists (select 1 from runs h where h.partition_key = r.partition_key
        and h.id <> r.id and (h.locked_by is not null or h.status in ('runnable', 'awaiting_signal'))))
      or (status = 'runnable' and hold & 6 <> 0)
      or (status = 'executing' and exists (select 1 from workers w where w.id = r.locked_by))
      or status = 'awaiting_signal'
      or (status = 'awaiting_children' and children_pending > 0 and children_pending = (
        select count(*) from runs c where c.parent_id = r.id and c.child_of = r.spawn and c.status not in ('done', 'failed', 'cancelled'))))`,
  ),
  bySql(
    "no claim is left behind: who holds a run lives",
    `
    select id, locked_by from runs r where locked_by is not null
      and not exists (select 1 from workers w where w.id = r.locked_by and w.seen_at + w.lease > clock_timestamp())`,
  ),
  bySql(
    "no lost wake-up: nobody waits for a signal that is in its inbox",
    `
    select r.id, s.name from runs r join signals s on s.run_id = r.id and s.consumed_at is null
    where r.status = 'awaiting_signal' and r.awaits -> 'names' ? s.name and not s.seq = any (coalesce(r.shown, '{}'))`,
  ),
  {
    says: "signals are conserved: what was acknowledged is in the result, each once",
    broken: async ({ sql }) =>
      sql(`select id, result, input from runs where name = 'gather' and status = 'done'
        and jsonb_array_length(result) <> (select count(distinct e) from jsonb_array_elements(result) e)`),
  },
  bySql(
    "an ended run has nothing in its inbox that it could still consume",
    `
    select s.run_id, s.name from signals s join runs r on r.id = s.run_id
    where r.completed_at is not null and s.consumed_at is null`,
  ),
  {
    says: "terminal is final: what had ended when somebody looked has ended like that",
    broken: async ({ sql, seenEnds }) => {
      const rows = await sql<{ id: string; how: string }>(
        `select id, ${endOf} as how from runs where completed_at is not null`,
      );
      const now = new Map(rows.map(({ id, how }) => [id, how]));
      return [...seenEnds]
        .filter(([id, how]) => now.get(id) !== how)
        .map(([id, how]) => ({ id, how, now: now.get(id) }));
    },
  },
  bySql(
    "each step of a workflow is recorded once, with its place in the order",
    `
    select run_id, count(*), count(distinct seq) from steps where completed_at is not null
    group by run_id having count(*) <> count(distinct seq)`,
  ),
  bySql(
    "what is recorded in a transaction happened exactly once",
    `
    select r.id, t.step, count(t.*) from runs r cross join (values ('debit'), ('credit')) w(step)
    left join public.transfers t on t.run_id = r.id::text and t.step = w.step
    where r.name = 'transfer' and r.status = 'done' group by r.id, w.step, t.step having count(t.*) <> 1`,
  ),
  bySql(
    "a transaction that was not recorded left nothing",
    `
    select t.run_id, t.step from public.transfers t
    where not exists (select 1 from steps s where s.run_id = t.run_id::bigint and s.name = t.step and s.completed_at is not null)`,
  ),
  bySql(
    "one at a time for each key: every number was taken once, and none left out",
    `
    select key, count(*), count(distinct n), max(n) from public.turns group by key
    having count(*) <> count(distinct n) or max(n) <> count(*)`,
  ),
  bySql(
    "one number for each run of a key",
    `
    select r.id, r.result, count(t.*) from runs r left join public.turns t on t.run_id = r.id::text and to_jsonb(t.n) = r.result
    where r.name = 'turn' and r.status = 'done' group by r.id, r.result having count(t.*) <> 1`,
  ),
  {
    says: "versions are pinned: a run was only ever executed by the code that it was started for",
    broken: async ({ ledger, history }) => {
      const versions = new Map(history.started.map(({ runId, definition }) => [runId, definition.version]));
      const rows = await ledger<{ run_id: string; version: number }>(
        "select distinct run_id, version from public.ledger where version <> 1 or step in ('start', 'end')",
      );
      return rows.filter((row) => versions.has(row.run_id) && versions.get(row.run_id) !== row.version);
    },
  },
  {
    says: "no early timer: a nap was never shorter than it should be",
    broken: async ({ sql }) =>
      sql(`select b.run_id, a.started_at - b.completed_at as slept, r.input from steps b
        join steps a on a.run_id = b.run_id and a.name = 'after'
        join runs r on r.id = b.run_id
        where b.name = 'before' and r.name = 'nap'
          and a.completed_at - b.completed_at < (r.input ->> 'ms')::int * interval '1 millisecond'`),
  },
  {
    says: "causality: no step was entered before the one before it, and none after the run had ended in another way",
    broken: async ({ ledger }) =>
      ledger(`select l.run_id, l.step, l.id, before.id as before from public.ledger l
        join (select run_id, step, min(id) as id from public.ledger group by run_id, step) before
          on before.run_id = l.run_id and before.step = case l.step
            when 'second' then 'start' when 'third' then 'second' when 'fourth' then 'third' when 'last' then 'fourth'
            when 'after' then 'before' end
        where l.id < before.id`),
  },
  {
    says: "nothing was done that was not started, and everything that was started was done",
    broken: async ({ sql, ledger }) => {
      const ids = new Set((await sql<{ id: string }>("select id from runs")).map(({ id }) => id));
      const told = await ledger<{ run_id: string }>("select distinct run_id from public.ledger");
      return told.filter(({ run_id }) => !ids.has(run_id));
    },
  },
  bySql(
    "bounded growth: nothing is kept for runs that are not there",
    `
    select 'steps' as of, run_id from steps s where not exists (select 1 from runs r where r.id = s.run_id)
    union all
    select 'signals', run_id from signals s where not exists (select 1 from runs r where r.id = s.run_id)
    union all
    select 'consumed', run_id from signals s where consumed_at is not null and (dedup_key is null or payload is not null)`,
  ),
  bySql(
    "uniqueness: a key has one run",
    `
    select idempotency_key, count(*) from runs where idempotency_key is not null group by 1 having count(*) > 1`,
  ),
];

/** After all workers were told to stop and have. */
export const afterStop: readonly Invariant[] = [
  bySql("clean shutdown: no claim is left", "select id, locked_by from runs where locked_by is not null"),
];

function isExpected(name: string, result: unknown, expected: Acknowledged["expected"]): boolean {
  if (expected === undefined) return result !== null;
  const is = name === "gather" && Array.isArray(result) ? result.toSorted((a, b) => a - b) : result;
  return JSON.stringify(sorted(is)) === JSON.stringify(sorted(expected));
}

/** With the members of objects in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}
