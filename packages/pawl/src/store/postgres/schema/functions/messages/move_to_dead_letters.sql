-- pawl: inner
-- Moves messages that were received too often to the dead-letter queue `<queue>-dead`. There they
-- are ordinary messages with the same body, group and id; `state` says where they came from. The
-- caller has locked them and the keys of their groups. Lets in the next message of each group.
create or replace function move_to_dead_letters(p_queue text, p_id bigint[], p_now timestamptz) returns void language plpgsql as $f$
declare
  v_keys text[];
begin
  v_keys := array(
    select r.partition_key from unnest(p_id) u(id)
    cross join lateral (select t.partition_key from runs t where t.id = u.id limit 1) r
    where r.partition_key is not null);
  update runs r set queue = v.dead, name = '~' || v.dead, partition_key = v.key, state = v.state,
    attempt = 0, claim_id = null, idempotency_key = null, eligible_at = p_now
  from (select u.id, p_queue || '-dead' as dead,
      group_key(p_queue || '-dead', substr(t.partition_key, length(p_queue) + 3)) as key,
      jsonb_build_object('from', p_queue, 'receives', t.attempt) as state
    from unnest(p_id) u(id)
    cross join lateral (select r.partition_key, r.attempt from runs r where r.id = u.id limit 1) t
    limit cardinality(p_id)) v
  where r.id = v.id;
  if cardinality(v_keys) > 0 then
    perform unblock_first(v_keys, p_now);
  end if;
end $f$;
