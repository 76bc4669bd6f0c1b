-- pawl: inner
-- Topics. A subscription binds a pattern to a target: {"type": "workflow", "name"}, {"type": "queue", "queue"} or {"type": "http", "url"}.
-- Its secret is stored beside the target and given to nobody but the deliverer (subscription_target).

-- Whether a pattern wants a topic. Words are separated by dots; `*` is any one word, `#`, which is the last, any number of them.
create or replace function topic_matches(p_pattern text, p_topic text) returns boolean language plpgsql immutable as $f$
declare
  v_pattern text[] := string_to_array(p_pattern, '.');
  v_topic text[] := string_to_array(p_topic, '.');
begin
  for i in 1 .. cardinality(v_pattern) loop
    if v_pattern[i] = '#' then
      return true;
    end if;
    if i > cardinality(v_topic) or (v_pattern[i] <> '*' and v_pattern[i] <> v_topic[i]) then
      return false;
    end if;
  end loop;
  return cardinality(v_pattern) = cardinality(v_topic);
end $f$;

-- Whether some topic is wanted by both patterns.
create or replace function patterns_meet(p_one text, p_other text) returns boolean language plpgsql immutable as $f$
declare
  v_one text[] := string_to_array(p_one, '.');
  v_other text[] := string_to_array(p_other, '.');
begin
  for i in 1 .. greatest(cardinality(v_one), cardinality(v_other)) loop
    if v_one[i] = '#' or v_other[i] = '#' then
      return true;
    end if;
    if v_one[i] is null or v_other[i] is null or (v_one[i] <> v_other[i] and v_one[i] <> '*' and v_other[i] <> '*') then
      return false;
    end if;
  end loop;
  return true;
end $f$;
