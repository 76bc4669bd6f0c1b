-- pawl: inner
-- The facts about the concurrency limit of a run, for why: how many slots the key has (null: any
-- number), how many are held and by which runs (the first 10), and how many runs are before it in
-- line (at most 1,000). Rides runs_slots and runs_slot_line.
create or replace function slot_facts(p_run runs) returns jsonb language plpgsql stable as $f$
begin
  return jsonb_build_object(
    'concurrent', (select l.concurrent from limits l where l.name = split_part(p_run.concurrency, ':', 1)),
    'held', (select count(*) from runs r where r.concurrency = p_run.concurrency and r.locked_by is not null),
    'holders', (
      select coalesce(jsonb_agg(h.id::text), '[]') from (
        select r.id from runs r where r.concurrency = p_run.concurrency and r.locked_by is not null order by r.slot limit 10) h),
    'ahead', (
      select count(*) from (
        select 1 from runs r where r.concurrency = p_run.concurrency
          and r.slot = 0 and case when r.status in ('runnable', 'awaiting_signal') then (r.hold & -33) = 0 else false end
          and r.queue = p_run.queue and r.name = p_run.name and r.version = p_run.version
          and (r.priority, r.eligible_at, r.id) < (p_run.priority, p_run.eligible_at, p_run.id)
        order by r.priority, r.eligible_at, r.id limit 1000) a));
end $f$;
