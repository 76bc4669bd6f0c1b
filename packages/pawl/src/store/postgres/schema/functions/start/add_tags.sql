-- pawl: inner
-- Stores the tags of new runs. p_ids are their ids by position; null: not started.
create or replace function add_tags(p_ids bigint[], p_options jsonb[]) returns void language plpgsql as $f$
begin
  insert into tags (run_id, name, value)
  select u.id, t.key, t.value from unnest(p_ids, p_options) u(id, more)
  cross join lateral jsonb_each_text(u.more -> 'tags') t
  where u.id is not null and u.more ? 'tags';
end $f$;

-- The tags of a run as a JSON object; null: it has none.
create or replace function tags_of(p_id bigint) returns jsonb language plpgsql stable as $f$
begin
  return (select jsonb_object_agg(t.name, t.value) from tags t where t.run_id = p_id);
end $f$;
