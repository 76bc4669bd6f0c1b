-- pawl: inner
-- Writes a line of the action log, in the transaction of the action. p_by is who and from where, as
-- JSON {who, from}; null: nothing is written, because the caller has its own line (a bulk
-- operation).
create or replace function note_action(p_by text, p_action text, p_target text, p_detail jsonb default null) returns void
language plpgsql as $f$
begin
  if p_by is not null then
    insert into actions (at, who, source, action, target, detail)
      values (clock(), left(p_by::jsonb ->> 'who', 256), left(p_by::jsonb ->> 'from', 256), p_action, left(p_target, 512),
        jsonb_strip_nulls(p_detail));
  end if;
end $f$;
