-- pawl: inner
-- Counts the runs that started and ended since the last time (add_to_series), samples the backlog and
-- deletes old rows. `recover` calls it; it does something every 10 s, and at once after a full batch.
-- One caller at a time: it holds the row of series_cursor, and the others skip it. The counts and the
-- cursor are one transaction, so a crash counts nothing twice.
-- It counts what happened at least 5 s ago: a transaction that is open for longer after it started or
-- ended a run is missed. Each call counts at most about p_limit starts, and p_limit ends of each
-- retention. Answers whether there is more to count. Rides runs_pkey and runs_expiry.
create or replace function roll_up(p_limit int) returns boolean language plpgsql as $f$
declare
  c_sample constant interval := '30 seconds';
  c_delay constant interval := '5 seconds';
  c_most constant int := 10000;      -- of the backlog
  v_now timestamptz := clock();
  v_upto timestamptz := v_now - c_delay;
  v_cursor series_cursor;
  v_last_id bigint;
  v_seen int;
  v_is_cut boolean;
  v_after timestamptz;
  v_end timestamptz;
begin
  if not is_roll_up_due() then
    return false;
  end if;
  select c.* into v_cursor from series_cursor c for update skip locked;
  if not found or not is_roll_up_due() then
    return false;
  end if;
  v_after := greatest(v_cursor.ended_at, v_now - interval '31 days');
  select coalesce(min(b.id) filter (where b.inserted_at > v_upto) - 1, max(b.id), v_cursor.started_id), count(*),
    coalesce(bool_or(b.inserted_at > v_upto), false)
  into v_last_id, v_seen, v_is_cut from (
    select r.id, r.inserted_at from runs r
    where r.id > v_cursor.started_id and r.id < first_message_id() order by r.id limit p_limit) b;
  -- the end of the batch: as far as no retention has more than p_limit ends
  select least(v_upto, min(x.ended_at)) into v_end from ended_retentions() k(kept)
    cross join lateral (
      select r.expires_at - k.kept as ended_at from runs r
      where r.retention = k.kept and r.expires_at > v_after + k.kept and r.expires_at <= v_upto + k.kept
      order by r.expires_at offset p_limit - 1 limit 1) x;
  v_cursor.is_behind := (v_seen = p_limit and not v_is_cut) or v_end < v_upto;
  v_end := greatest(v_end, v_cursor.ended_at);
  perform add_to_series(v_cursor.started_id, v_last_id, v_after, v_end, null, v_now);

  if v_cursor.sampled_at not between v_now - c_sample and v_now then
    insert into series as s (grain, name, queue, at, backlog)
      select g.grain, b.name, b.queue, date_trunc(g.grain, v_now, 'UTC'), least(b.runs, c_most)
      from (values ('minute'), ('hour')) g(grain)
      cross join (
        select k.name, k.queue, sum(d.runs) as runs
        from (select l.name, l.queue, l.runs from due_lines(c_most, v_now) l where l.runs > 0 union all select '', '', 0) d
        cross join lateral (values (d.name, d.queue), (d.name, ''), ('', d.queue), ('', '')) k(name, queue)
        group by 1, 2) b
    on conflict (grain, name, queue, at) do update set backlog = greatest(s.backlog, excluded.backlog);
    delete from series s using (
      select o.* from (values ('minute', interval '1 day'), ('hour', interval '31 days')) g(grain, kept)
      cross join lateral (select t.grain, t.name, t.queue, t.at from series t
        where t.grain = g.grain and t.at < v_now - g.kept - interval '1 hour' order by t.at limit p_limit) o) v
      where s.grain = v.grain and s.name = v.name and s.queue = v.queue and s.at = v.at;
    delete from failures f using (
      select o.at, o.name, o.code, o.step from failures o where o.at < v_now - interval '31 days 1 hour' order by o.at limit p_limit) v
      where f.at = v.at and f.name = v.name and f.code = v.code and f.step = v.step;
    v_cursor.sampled_at := v_now;
  end if;

  update series_cursor c set started_id = v_last_id, ended_at = v_end, counted_at = v_now, sampled_at = v_cursor.sampled_at,
    is_behind = v_cursor.is_behind;
  return v_cursor.is_behind;
end $f$;

-- Whether there is something to count, or the last count is 10 s old.
create or replace function is_roll_up_due() returns boolean language plpgsql stable as $f$
declare
  v_now timestamptz := clock();
begin
  return not is_held() and exists (
    select 1 from series_cursor c where c.is_behind or c.counted_at <= v_now - interval '10 seconds' or c.counted_at > v_now);
end $f$;

-- Counts runs that are about to be deleted and were not counted yet. The caller has locked them.
create or replace function count_deleted(p_ids bigint[]) returns void language plpgsql as $f$
declare
  v_cursor series_cursor;
begin
  select c.* into v_cursor from series_cursor c;
  if not exists (select 1 from unnest(p_ids) u(id)
      cross join lateral (select t.id, t.completed_at from runs t where t.id = u.id limit 1) r
      where r.id > v_cursor.started_id or r.completed_at > v_cursor.ended_at) then
    return;
  end if;
  -- roll_up may be counting them now
  select c.* into v_cursor from series_cursor c for update;
  perform add_to_series(v_cursor.started_id, v_cursor.started_id, v_cursor.ended_at, v_cursor.ended_at, p_ids, clock());
end $f$;
