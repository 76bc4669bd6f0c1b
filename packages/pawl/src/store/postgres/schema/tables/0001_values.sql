-- pawl: table
-- Large values are compressed by lz4 where the server has it: a third less time for them than with pglz.
do $do$
declare
  c record;
begin
  if 'lz4' = any ((select s.enumvals from pg_settings s where s.name = 'default_toast_compression')::text[]) then
    for c in
      select a.attrelid::regclass as of, a.attname from pg_attribute a
      where a.attrelid in ('runs'::regclass, 'signals'::regclass, 'steps'::regclass) and a.atttypid = 'jsonb'::regtype and a.attnum > 0
    loop
      execute format('alter table %s alter column %I set compression lz4', c.of, c.attname);
    end loop;
  end if;
end $do$;
