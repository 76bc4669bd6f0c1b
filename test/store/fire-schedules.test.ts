import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { start } from "../support/store.js";

const database = await testDatabase();
const client = connect(database.url);
afterAll(() => client.close());
const { sql } = database;
const count = 100;

it("schedules whose last runs are locked delay the others by one short wait, not by one each", async () => {
  const runs = await start(
    database,
    ...Array.from({ length: count }, () => ({ name: "work", kind: "job" as const })),
  );
  await client.schedules.set("first", { every: "1d", start: "work", paused: true });
  await sql(
    `insert into schedules (name, run, every_ms, time_zone, jitter_ms, offset_ms, overlap, catch_up, set_at, next_at, due_at, last_run_id)
      select 's' || u.o, (select run from schedules), 1000, 'UTC', 0, 0, 'cancel', 'last', clock(), 'epoch', 'epoch', u.id
      from unnest($1::bigint[]) with ordinality u(id, o)`,
    [runs],
  );
  const locker = await database.connect();
  await locker.query("begin");
  // All but the last one.
  await locker.query("select 1 from runs where id < $1 for update", [runs.at(-1)]);
  const firings = runs.map((_, index) => {
    const [epoch, next] = [new Date(0), new Date(1_000)];
    return { name: `s${index + 1}`, expected: epoch, ticks: [epoch], next };
  });
  const firer = await database.connect();
  // 100 waits of 100 ms each would be ten seconds.
  await firer.query("set statement_timeout = '5s'");
  const { rows } = await firer.query<{ verdict: string }>("select * from fire_schedules($1)", [
    JSON.stringify(firings),
  ]);
  expect(rows.map(({ verdict }) => verdict)).toEqual([...Array(count - 1).fill("busy"), "fired"]);
  await locker.query("rollback");
  const { rows: later } = await firer.query<{ verdict: string }>("select * from fire_schedules($1)", [
    JSON.stringify(firings.slice(0, 2)),
  ]);
  expect(later.map(({ verdict }) => verdict)).toEqual(["fired", "fired"]);
  expect(await sql("select 1 from runs where status = 'cancelled'")).toHaveLength(3);
});
