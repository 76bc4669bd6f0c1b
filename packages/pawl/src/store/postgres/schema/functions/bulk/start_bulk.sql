-- pawl: call
-- Begins an operation on all runs that match the filter (count_listed, as JSON) and were started
-- before this moment. p_counted is how many matched when the caller counted them. Writes a line of
-- the action log. Answers its id; work_bulk does the rest.
create or replace function start_bulk(p_action text, p_filter text, p_options text, p_counted bigint, p_by text) returns bigint
language plpgsql as $f$
declare
  v_id bigint;
begin
  perform require_durable_commit();
  insert into bulk_operations (status, action, filter, options, actor, upto, counted, started_at)
    values ('working', p_action, p_filter::jsonb, p_options::jsonb, p_by::jsonb,
      coalesce((select r.id from runs r where r.id < first_message_id() order by r.id desc limit 1), 0), p_counted, clock())
    returning bulk_operations.id into v_id;
  perform note_action(p_by, 'runs.bulk', v_id::text, jsonb_build_object('action', p_action, 'where', p_filter::jsonb -> 'where',
    'counted', p_counted));
  return v_id;
end $f$;

-- Ends an operation before it is through: runs that it has not reached stay as they are. Waits for
-- the batch that is under way. Answers whether there is such an operation.
create or replace function stop_bulk(p_id bigint, p_by text) returns boolean language plpgsql as $f$
declare
  v_ended timestamptz;
begin
  perform require_durable_commit();
  select o.completed_at into v_ended from bulk_operations o where o.id = p_id for update;
  if not found then
    return false;
  end if;
  if v_ended is null then
    update bulk_operations o set status = 'stopped', completed_at = clock() where o.id = p_id;
    perform note_action(p_by, 'bulk.stop', p_id::text);
  end if;
  return true;
end $f$;
