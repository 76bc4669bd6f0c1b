-- Settings that ride on the functions, in one place; on those that this very transaction has made, since the schema may
-- hold others.
-- search_path: taken from the migration, the schema first (its now() is the engine's clock), pg_temp last.
-- The planner settings keep plans that were cached on an empty table right at a million rows, and keep JIT away.
-- The listing and the counts are the exception: planned anew with its actual filters. Functions that only others call inherit all
-- of it from their caller (a SET clause costs 2 µs a call).
do $do$
declare
  f record;
begin
  for f in
    select p.oid::regprocedure as signature, p.proname as name from pg_proc p
    where p.pronamespace = quote_ident(current_schema())::regnamespace and p.xmin = pg_current_xact_id()::xid and p.proname not in
      ('now', 'timeline', 'iso', 'is_row_fault', 'require_read_committed', 'require_durable_commit', 'require_limits', 'is_served', 'place', 'is_held', 'resolve', 'new_rows',
       'key_lock', 'lock_key', 'is_key_held', 'first_of_key', 'unblock_first', 'free_keys', 'hand_over', 'claimed_run',
       'is_key_settled', 'is_wanted', 'resolved', 'is_awaited', 'require_name', 'require_names', 'require_short_names',
       'claim_entering_scope', 'claim_keyed', 'claim_limited', 'take_bucket', 'put_bucket', 'inbox_inline', 'journal_inline',
       'inbox_names', 'end_lone_wait', 'commit_one', 'apply_transitions', 'decide_details', 'has_match', 'new_runs',
       'spawn_children', 'wake_runs', 'release_parents', 'deliver_replies', 'apply_records', 'record_wait', 'consume_signals',
       'clear_inboxes', 'let_go', 'claims_ending', 'bury', 'end_visibility', 'freed_queues', 'topic_matches', 'patterns_meet',
       'leave_keys', 'unplaced', 'set_one_aside', 'within_reach', 'later', 'to_us', 'ms_until', 'require_time', 'require_delay',
       'require_limit', 'tokens_per_second')
  loop
    execute format('alter function %s set search_path from current', f.signature);
    execute format('alter function %s set jit = off', f.signature);
    if f.name in ('list', 'count_runs', 'count_listed') then
      execute format('alter function %s set plan_cache_mode = force_custom_plan', f.signature);
    else
      execute format('alter function %s set enable_seqscan = off', f.signature);
      execute format('alter function %s set enable_hashjoin = off', f.signature);
      execute format('alter function %s set enable_mergejoin = off', f.signature);
      execute format('alter function %s set enable_bitmapscan = off', f.signature);
      execute format('alter function %s set enable_sort = off', f.signature);
      execute format('alter function %s set enable_material = off', f.signature);
      execute format('alter function %s set plan_cache_mode = force_generic_plan', f.signature);
    end if;
  end loop;
  -- never behind a user's open transaction; below deadlock_timeout, so that no deadlock is ever reported instead. Calls of clients that
  -- find something locked for longer are sent again, in slow lanes
  for f in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = quote_ident(current_schema())::regnamespace and p.xmin = pg_current_xact_id()::xid
      and p.proname in ('claim', 'set_aside', 'commit', 'finish', 'record', 'release', 'reap', 'recover', 'unregister',
        'cancel', 'ack', 'extend', 'subscribe')
  loop
    execute format('alter function %s set lock_timeout = %L', f.signature, '100ms');
  end loop;
  -- whoever else is in it is nearly done
  alter function begin_timeline(smallint) set lock_timeout = '5s';
end $do$;
