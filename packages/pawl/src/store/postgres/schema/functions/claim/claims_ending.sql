-- pawl: inner
-- What runs become when their claim ends without an outcome (see let_go).
create or replace function claims_ending(p_id bigint[], p_crashes int, p_now timestamptz)
returns table (id bigint, status run_status, attempt int, crashes int, crash_seq int, eligible_at timestamptz)
language plpgsql stable as $f$
#variable_conflict use_column
begin
  return query
    select r.id,
      case when r.status = 'executing' then 'runnable'::run_status else r.status end,
      case when r.status = 'executing' then r.attempt + least(p_crashes, 2147483647 - r.attempt) else r.attempt end,
      case when r.status = 'executing' then r.crashes + least(p_crashes, 2147483647 - r.crashes) else r.crashes end,
      r.crash_seq,
      case when r.status = 'executing' and p_crashes > 0 and r.crashes > 0
        then p_now + least(interval '1 second' * 2 ^ (least(r.crashes, 9) + 1), interval '1 minute')
        else r.eligible_at end
    from unnest(p_id) v(id)
    cross join lateral (
      select t.id, t.status, t.attempt, t.eligible_at, greatest(t.crash_seq, j.seq) as crash_seq,
        case when j.seq > t.crash_seq then 0 else t.crashes end as crashes    -- recorded steps are progress
      from runs t
      left join lateral (select max(s.seq) as seq from steps s
        where p_crashes > 0 and (t.kind = 'workflow') is true and s.run_id = t.id) j on true
      where t.id = v.id limit 1) r;
end $f$;
