/** What the compiler says to a mistake in a test. Never executed. */

import { job, signal, workflow } from "pawl";
import type { TestPawl } from "pawl/testing";
import { testPawl } from "pawl/testing";
import { expectTypeOf } from "vitest";

declare const t: TestPawl;
const order = workflow({
  name: "order",
  signals: { paid: signal<{ euros: number }>() },
  run: async (_ctx, input: { item: string }) => input.item,
});
const plain = job({ name: "plain", run: () => 1 });

export async function mistakes(): Promise<void> {
  const made = await testPawl({ definitions: [order, plain], now: new Date(), patience: "1s" });
  expectTypeOf(made).toEqualTypeOf<TestPawl>();
  expectTypeOf(made.now()).toEqualTypeOf<Date>();

  const report = await t.crashEverywhere(
    order,
    { item: "pawl" },
    {
      effects: () => null,
      drive: async (runId) => {
        await t.pawl.signal(runId, "paid", { euros: 1 });
        // @ts-expect-error -- the payload of this definition's signal
        await t.pawl.signal(runId, "paid", { dollars: 1 });
      },
    },
  );
  expectTypeOf(report.changed[0]!.after).toEqualTypeOf<string | null>();

  // @ts-expect-error -- not the input of this definition
  await t.crashEverywhere(order, { thing: "pawl" }, { effects: () => null });
  // @ts-expect-error -- effects are needed
  await t.crashEverywhere(plain, undefined, {});
  // @ts-expect-error -- a duration has a unit
  await t.advance("7");
  // @ts-expect-error -- a date, not a text
  await t.at("2030-01-01");
  // @ts-expect-error -- a test beats for nobody
  await t.serve([order], { lease: "1s" });
  // @ts-expect-error -- no such option
  await testPawl({ definition: order });
}
