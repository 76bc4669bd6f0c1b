-- pawl: call
-- The operator's ceiling: no run is kept longer after its end, whatever its definition or its start says. Of runs started from now on.
create or replace function set_retention_ceiling(p_days int) returns void language plpgsql as $f$
declare
  v_ceiling interval := p_days * interval '1 day';
begin
  perform require_durable_commit();
  update settings set retention_ceiling = v_ceiling where retention_ceiling <> v_ceiling;
end $f$;
