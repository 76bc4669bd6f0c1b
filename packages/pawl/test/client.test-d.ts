/** What the client knows of a run by the definition it was started with. Compiled, never run. */

import { type AnyDefinition, connect, job, machine, type Run, type RunId, serve, type } from "pawl";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(): T | undefined => undefined;

const double = job({ name: "double", input: type<{ n: number }>(), run: (_ctx, input) => input.n * 2 });
const order = machine({
  name: "order",
  state: type<{ id: string }>(),
  steps: { start: (ctx) => (ctx.attempt > 1 ? ctx.done("late") : ctx.done({ ok: true })) },
});
const pawl = connect();

export async function calls(): Promise<void> {
  const one = await pawl.start(double, { n: 1 }, { delay: "5m", uniqueKey: "a" });
  same<Equal<typeof one.runId, RunId<typeof double>>>();
  const result = await pawl.result(one.runId, { timeout: "1s" });
  same<Equal<typeof result, number>>();
  const other = await pawl.start(order, { id: "o" });
  const of = await pawl.result(other.runId);
  same<Equal<typeof of, "late" | { readonly ok: true }>>();
  const either = await pawl.result(Math.random() > 0.5 ? one.runId : other.runId);
  same<Equal<typeof either, number | "late" | { readonly ok: true }>>();
  const untyped = await pawl.result("64");
  same<Equal<typeof untyped, unknown>>();
  const many = await pawl.startMany(double, [{ input: { n: 1 }, uniqueKey: "k" }]);
  same<Equal<(typeof many)[number]["runId"], RunId<typeof double>>>();
  await pawl.start("by-name", { anything: true });
  await pawl.start("by-name");
  await pawl.start(job({ name: "no-input", run: () => 1 }));
  const run: Run = await pawl.runs.get(one.runId);
  void run;
  serve([double, order] satisfies readonly AnyDefinition[], { queues: { default: 5 } });

  // @ts-expect-error wrong input
  await pawl.start(double, { n: "1" });
  // @ts-expect-error input is missing
  await pawl.start(double);
  // @ts-expect-error unknown option
  await pawl.start(double, { n: 1 }, { dely: "5m" });
  // @ts-expect-error no such unit
  await pawl.start(double, { n: 1 }, { delay: "5 fortnights" });
  // @ts-expect-error wrong input of an item
  await pawl.startMany(double, [{ input: { m: 1 } }]);
  // @ts-expect-error no phase
  await pawl.start(double, { n: 1 }, { uniqueKey: "a", uniqueScope: ["running"] });
  // @ts-expect-error unknown option of serve
  serve([double], { queue: { default: 5 } });
  // @ts-expect-error not a definition
  serve([{ name: "double" }]);
}
