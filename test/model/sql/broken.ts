/** Functions built wrong, to see that the sequences find out. Each is one function of the schema with one piece replaced. */

import type { SequenceDatabase } from "./database.js";

interface Fault {
  readonly says: string;
  readonly of: string;
  readonly piece: string;
  readonly instead: string;
}

export const faults: readonly Fault[] = [
  {
    says: "an await that ignores what it was shown",
    of: "has_match",
    piece: "and not s.seq <@ v_shown",
    instead: "",
  },
  {
    says: "a signal that wakes without a match",
    of: "is_wanted",
    piece: "and (p_awaits -> 'match' is null or p_payload @> (p_awaits -> 'match'))",
    instead: "",
  },
  {
    says: "a claim that does not say that a wait has timed out",
    of: "take_claims",
    piece: "timed_out = r.timed_out or (r.status = 'awaiting_signal' and p_signals = 0)",
    instead: "timed_out = r.timed_out",
  },
  {
    says: "a claim that shows what came after its wait was resolved",
    of: "is_awaited",
    piece: "and p_seq <= coalesce((p_awaits ->> 'upto')::int, p_seq)",
    instead: "",
  },
  {
    says: "a freed key that lets nobody in",
    of: "let_in",
    piece: "update runs r set hold = 0",
    instead: "update runs r set hold = r.hold",
  },
  {
    says: "a claim that forgets the order within a key",
    of: "claim_keyed",
    piece: "and first_of_key(r.partition_key, p_now) = u.id",
    instead: "",
  },
  {
    says: "a claim that looks at one definition after the other",
    of: "claim",
    piece: "over (order by f.priority, f.eligible_at, f.id rows",
    instead: "over (order by f.partition_key, f.priority, f.eligible_at, f.id rows",
  },
  {
    says: "a key whose first run is one that nobody serves",
    of: "first_of_key",
    piece: "order by d.is_served or h.eligible_at > p_now - interval '1 minute' desc, h.priority",
    instead: "order by h.priority",
  },
  {
    says: "a cancel that takes the holder away",
    of: "end_runs",
    piece: "set status = p_status, hold = 0,",
    instead: "set status = p_status, locked_by = null, hold = 0,",
  },
  {
    says: "a crash that is put off from the first on",
    of: "rows_after_claim",
    piece: "p_crashes > 0 and r.crashes > 0",
    instead: "p_crashes > 0",
  },
];

/** Runs with the fault in place, and mends it afterwards. */
export const withFault = async <T>(
  { sql }: SequenceDatabase,
  { of, piece, instead }: Fault,
  body: () => Promise<T>,
): Promise<T> => {
  // Some names have a second function, for people who speak SQL.
  const rows = await sql<{ text: string }>(
    `select pg_get_functiondef(oid) as text from pg_proc where proname = '${of}' and pronamespace = 'pawl'::regnamespace`,
  );
  const text = rows.find((row) => row.text.includes(piece))?.text;
  if (text === undefined) throw new Error(`${of} has no "${piece}" any more`);
  await sql(text.replace(piece, instead));
  try {
    return await body();
  } finally {
    await sql(text);
  }
};
