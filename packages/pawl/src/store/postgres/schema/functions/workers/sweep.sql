-- pawl: call
-- Retention: deletes up to p_limit terminal runs past their time, with journal, inbox and tags; finds
-- ids first, then deletes by key (forget_runs). Also old lines of the action log (sweep_log). Rides
-- runs_expiry once per retention, locks with SKIP LOCKED. A run that a worker still
-- holds (cancelled, its step not returned yet) waits. So does a child until its parent has gone on
-- from the step that sees it; if that step failed, a rerun may still want to see it.
-- Begins at p_after_us, where the last call stopped (microseconds; null: at the head), so that a
-- long drain does not walk again over deleted runs. Answers where it stopped (null: at the end).
-- Deletes nothing while the database is held: people who look into a copy want to find everything.
create or replace function sweep(p_limit int, p_after_us bigint default null) returns table (swept int, last bigint)
language plpgsql as $f$
declare
  v_now timestamptz := clock();
  v_after timestamptz := coalesce(timestamptz 'epoch' + p_after_us * interval '1 microsecond', '-infinity');
  c_kept constant int := 10000;
  v_kept interval[];
  v_found bigint[];
  v_ids bigint[];
begin
  perform require_read_committed();
  if is_held() then
    swept := 0;
    return next;
    return;
  end if;
  v_kept := array(select k.kept from ended_retentions() k(kept));
  if cardinality(v_kept) = c_kept and random() < 0.5 then
    v_kept := array(select k.kept from ended_retentions(random() * v_kept[c_kept]) k(kept));    -- none is left out for ever
  end if;
  v_found := array(select f.id from unnest(v_kept) k(kept)
    cross join lateral (select r.id, r.expires_at from runs r
      where r.retention = k.kept and r.expires_at >= v_after and r.expires_at <= v_now
        and (r.status in ('done', 'failed', 'cancelled')) is true and (r.locked_by is null) is true
        and (r.parent_id is null or (select p.id from runs p where p.id = r.parent_id
          and (p.spawn = r.child_of and p.awaits ? 'children' and p.status <> 'cancelled') is true limit 1) is null)
      order by r.expires_at limit p_limit) f
    order by f.expires_at limit p_limit);
  v_ids := array(select l.id from unnest(v_found) u(id)
    cross join lateral (select r.id from runs r where r.id = u.id and (r.locked_by is null) is true limit 1 for update skip locked) l);
  if cardinality(v_found) = p_limit then
    select to_us(r.expires_at) into last from runs r where r.id = v_found[p_limit];
  end if;
  perform forget_runs(v_ids);
  -- a bucket that is full by now carries no information
  delete from buckets b using (
    select c.name, c.key from buckets c join limits l on l.name = c.name
    where greatest(c.updated_at, c.promised_at) + coalesce(l.period * (l.burst / l.allowed), '0') < v_now
    limit p_limit for update of c skip locked) v
    where b.name = v.name and b.key = v.key;
  perform sweep_log(p_limit, v_now);
  swept := cardinality(v_ids);
  return next;
end $f$;
