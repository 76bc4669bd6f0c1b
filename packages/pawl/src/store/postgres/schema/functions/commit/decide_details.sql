-- pawl: inner
-- Decides the parts that only some transitions of a batch have, for apply_transitions, which has
-- locked the runs. Starts the children of a spawn, and looks into the inbox for a wait. Answers one
-- JSON object per position (null: no details):
--   awaits, shown  the wait, and the signals it has seen already
--   pending        how many children the run waits for
--   status, at     the new status, and when the run is due
--   partitionKey, rateLimit, weight, concurrency
create or replace function decide_details(
  p_id bigint[], p_claim_id bigint[], p_turn bigint[], p_op text[], p_detail text[], p_locked bigint[], p_now timestamptz
) returns jsonb[] language plpgsql as $f$
declare
  v_since jsonb := jsonb_build_object('since', iso(p_now));
  v_spawned jsonb;
  v_more jsonb[] := array_fill(null::jsonb, array[cardinality(p_id)]);
  v_detail jsonb;
begin
  if 'spawn' = any (p_op) then
    v_spawned := spawn_children(p_id, p_claim_id, p_turn, p_op, p_detail, p_locked);
  end if;
  for i in 1 .. cardinality(p_id) loop
    continue when p_detail[i] is null or p_op[i] = 'keep';
    v_detail := p_detail[i];
    if p_op[i] = 'await' then
      perform require_short_names('signal', array(select n.name from jsonb_array_elements_text(v_detail -> 'awaits' -> 'names') n(name)));
      v_more[i] := jsonb_build_object('awaits', v_detail -> 'awaits' || v_since,
          'shown', translate(v_detail ->> 'shown', '[]', '{}'))
        || case when has_match(p_id[i], v_detail -> 'awaits', v_detail -> 'shown')
          then jsonb_build_object('status', 'runnable', 'at', p_now)
          when v_detail ? 'at' then jsonb_build_object('status', 'awaiting_signal', 'at', v_detail -> 'at')
          else '{"status": "awaiting_signal"}' end;
    elsif p_op[i] = 'spawn' then
      v_more[i] := coalesce(v_spawned -> i::text, '{"children": 0, "pending": 0, "held": []}');
      v_more[i] := jsonb_build_object('pending', v_more[i] -> 'pending', 'awaits', v_more[i] - 'pending' || v_since)
        || case when v_more[i] -> 'pending' = '0' then jsonb_build_object('status', 'runnable', 'at', p_now)
          else '{"status": "awaiting_children", "at": "infinity"}' end;
    else
      if v_detail ? 'rateLimit' then
        perform require_limits(array[v_detail ->> 'rateLimit'], array[(v_detail ->> 'weight')::int]);
      end if;
      if v_detail ->> 'concurrency' is not null then
        perform require_concurrency(array[v_detail ->> 'concurrency']);
      end if;
      perform require_free_key(v_detail ->> 'partitionKey') where v_detail ? 'partitionKey';
      if octet_length(v_detail ->> 'partitionKey') > 512 then
        raise exception 'the partition key is % bytes long: shorten it to at most 512 bytes', octet_length(v_detail ->> 'partitionKey')
          using errcode = 'PW422';
      end if;
      v_more[i] := v_detail - 'consumed';
    end if;
  end loop;
  return v_more;
end $f$;
