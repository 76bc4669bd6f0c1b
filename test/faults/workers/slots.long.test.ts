import { connect, job, serve } from "pawl";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../support/database.js";
import { silent } from "../../support/engine.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { sql } = database;
const pawl = connect(database.url);
afterAll(() => pawl.close());

const keys = 1_000;
const concurrent = 3;
const count = Number(process.env["PAWL_RUNS"] ?? 100_000);

it(`${count} runs over ${keys} keys: a key with most of them delays no other, and no key has more than ${concurrent} at once`, async () => {
  await pawl.limits.set("tenant", { concurrent });
  const now = new Map<string, number>();
  let worst = 0;
  const ended = { big: 0, small: 0 };
  const work = job({
    name: "work",
    run: async (_, key: string) => {
      now.set(key, (now.get(key) ?? 0) + 1);
      worst = Math.max(worst, now.get(key)!);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now.set(key, now.get(key)! - 1);
      ended[key === "big" ? "big" : "small"]++;
    },
  });
  const startMany = async (keyOf: (n: number) => string, size: number): Promise<void> => {
    for (let from = 0; from < size; from += 1_000) {
      const items = Array.from({ length: Math.min(1_000, size - from) }, (_, n) => {
        const key = keyOf(from + n);
        return { input: key, concurrency: { name: "tenant", key } };
      });
      await pawl.startMany(work, items);
    }
  };
  // Half of all runs belong to one tenant, and were there first.
  await startMany(() => "big", count / 2);
  await startMany((n) => `small-${n % (keys - 1)}`, count / 2);
  const begun = performance.now();
  for (let n = 0; n < 2; n++) {
    const worker = serve([work], { url: database.url, queues: { default: 200 }, logger: silent });
    onTestFinished(() => worker.stop());
    await worker.ready;
  }
  await until("the small tenants are done", () => Promise.resolve(ended.small === count / 2), 1_200_000);
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.info(`the small tenants were done after ${seconds} s and ${ended.big} runs of the big one`);
  expect(worst).toBe(concurrent);
  // The big one has three of the many slots, so it takes few of the turns of the others.
  expect(ended.big).toBeLessThan(count / 4);
  const held = await sql(
    "select concurrency from runs where locked_by is not null group by 1 having count(*) > 3",
  );
  expect(held).toEqual([]);
}, 1_500_000);
