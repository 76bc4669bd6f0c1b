-- pawl: call
-- The newest runs that started or ended since a position: for streams of events. A position is an id
-- and a time in microseconds; null asks only where the stream stands now. Transactions commit in any
-- order, so the caller looks again from p_from, some seconds before p_after, and drops what it knows.
-- At most p_limit starts and p_limit ends; `more` counts those since p_after that were left out (up to
-- 10,000 each). `last_id` and `last_us`, the same in each row, are the new position. Without changes
-- there is one row without id.
-- Rides runs_pkey, and runs_expiry once per retention.
create or replace function list_changes(p_after_id bigint, p_after_us bigint, p_from_id bigint, p_from_us bigint, p_limit int)
returns table (
  change text, id text, name text, version int, queue text, phase text, step text, at text, more int, last_id text, last_us text)
language plpgsql stable as $f$
#variable_conflict use_column
declare
  c_most constant int := 10000;
  v_now timestamptz := clock();
  v_last_id bigint := coalesce((select r.id from runs r where r.id < first_message_id() order by r.id desc limit 1), 0);
  v_from timestamptz := timestamptz 'epoch' + p_from_us * interval '1 microsecond';
  v_after timestamptz := timestamptz 'epoch' + p_after_us * interval '1 microsecond';
  v_started bigint[];
  v_ended bigint[];
  v_more int;
begin
  if p_from_id is not null then
    v_started := array(select r.id from runs r where r.id > p_from_id and r.id <= v_last_id order by r.id desc limit p_limit);
    v_ended := array(
      select r.id from ended_retentions() k(kept)
      cross join lateral (
        select t.id, t.completed_at from runs t
        where t.retention = k.kept and t.expires_at > v_from + k.kept and t.expires_at <= v_now + k.kept
        order by t.expires_at desc limit p_limit) r
      order by r.completed_at desc, r.id desc limit p_limit);
    select greatest(0, s.starts - p_limit) + greatest(0, s.ends - p_limit) into v_more from (
      select (select count(*) from (select 1 from runs r where r.id > p_after_id and r.id <= v_last_id limit c_most) n) as starts,
        (select count(*) from (
          select 1 from ended_retentions() k(kept)
          cross join lateral (select 1 from runs t
            where t.retention = k.kept and t.expires_at > v_after + k.kept and t.expires_at <= v_now + k.kept limit c_most) r
          limit c_most) n) as ends) s;
  end if;
  return query
    select c.change, r.id::text, r.name, r.version, coalesce(r.queue, 'default'), r.status::text, r.step,
      iso(case when c.change = 'ended' then r.completed_at else r.inserted_at end), coalesce(v_more, 0), v_last_id::text, to_us(v_now)::text
    from (select 1) one
    left join (
      (select 'started' as change, u.id from unnest(v_started) u(id) union all select 'ended', u.id from unnest(v_ended) u(id)) c
      join runs r on r.id = c.id) on true
    order by case when c.change = 'ended' then r.completed_at else r.inserted_at end, r.id;
end $f$;

-- These runs, each with a mark that differs whenever the run has changed: its phase, its step, its
-- journal, its inbox. For streams of events about single runs. Rides runs_pkey and steps_pkey.
create or replace function run_marks(p_ids bigint[])
returns table (id text, name text, version int, queue text, phase text, step text, at text, mark text) language plpgsql stable as $f$
#variable_conflict use_column
declare
  v_now timestamptz := clock();
begin
  return query
    select r.id::text, r.name, r.version, coalesce(r.queue, 'default'), r.status::text, r.step, iso(v_now),
      concat_ws('/', r.status, r.turn, r.attempt, r.step, r.inbox_seq, r.hold, r.claim_id, r.locked_by, r.eligible_at,
        case when r.kind = 'workflow' and r.completed_at is null then (
          select count(*) || '/' || coalesce(max(greatest(s.started_at, s.completed_at, s.due_at))::text, '') || '/' || coalesce(sum(s.attempt), 0)
          from steps s where s.run_id = r.id) end)
    from unnest(p_ids) u(id) cross join lateral (select t.* from runs t where t.id = u.id and t.id < first_message_id() limit 1) r;
end $f$;
