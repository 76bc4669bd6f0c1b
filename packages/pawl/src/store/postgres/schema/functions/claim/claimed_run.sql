-- pawl: inner
-- A run that has just been claimed by something else than claim, as JSON with the columns that claim answers. Inlined by the
-- planner: only what is named here is read.
create or replace function claimed_run(r runs) returns jsonb language sql stable as $$
  select jsonb_build_object('id', r.id::text, 'name', r.name, 'version', r.version, 'step', r.step, 'priority', r.priority,
    'attempt', r.attempt, 'crashes', r.crashes, 'parent_id', r.parent_id::text, 'partition_key', r.partition_key,
    'timed_out', r.timed_out, 'children', r.awaits -> 'children', 'inbox_seq', r.inbox_seq,
    'inbox', case when r.inbox_seq > 0 and r.kind is distinct from 'workflow' then inbox_inline(r.id, r.awaits, 262144) end,
    'journal', case when r.kind = 'workflow' then journal_inline(r.id, 262144) end,
    'waiting', case when r.kind = 'workflow' and r.inbox_seq > 0 then inbox_names(r.id, 262144) end,
    'input', case when r.state is null then r.input::text end, 'state', r.state::text, 'unique_lost', false,
    'started_ms', date_part('epoch', r.inserted_at) * 1000, 'trace', r.trace)
$$;
