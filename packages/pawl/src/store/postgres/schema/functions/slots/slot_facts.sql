-- pawl: inner
-- The facts about the concurrency limit of a run, for why: how many slots the key has (null: any
-- number), how many are held and by which runs (the first 10), and how many runs are before it in
-- line (at most 1,000). Rides slots_held and slots_line.
create or replace function slot_facts(p_run runs) returns jsonb language plpgsql stable as $f$
begin
  return jsonb_build_object(
    'concurrent', (select l.concurrent from limits l where l.name = split_part(p_run.concurrency, ':', 1)),
    'held', (select count(*) from slots s where s.concurrency = p_run.concurrency and s.slot > 0),
    'holders', (
      select coalesce(jsonb_agg(h.run_id::text), '[]') from (
        select s.run_id from slots s where s.concurrency = p_run.concurrency and s.slot > 0 order by s.slot limit 10) h),
    'ahead', (
      select count(*) from (
        select 1 from slots s where s.concurrency = p_run.concurrency and s.slot = 0
          and s.queue = p_run.queue and s.name = p_run.name and s.version = p_run.version
          and (s.priority, s.eligible_at, s.run_id) < (p_run.priority, p_run.eligible_at, p_run.id)
        order by s.priority, s.eligible_at, s.run_id limit 1000) a));
end $f$;
