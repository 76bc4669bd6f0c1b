/** What the client knows of a run by the definition it was started with. Compiled, never run. */

import { type AnyDefinition, connect, job, machine, type Run, type RunId, serve, signal, type } from "pawl";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(): T | undefined => undefined;

const double = job({ name: "double", input: type<{ n: number }>(), run: (_ctx, input) => input.n * 2 });
const order = machine({
  name: "order",
  state: type<{ id: string }>(),
  steps: { start: (ctx) => (ctx.attempt > 1 ? ctx.done("late") : ctx.done({ ok: true })) },
});
const payment = machine({
  name: "payment",
  state: type<{ id: string }>(),
  signals: { paid: signal<{ amount: number; at?: Date }>(), shipped: signal() },
  steps: { start: (ctx) => ctx.awaitSignal(["paid", "shipped"], "end", ctx.state), end: (ctx) => ctx.done() },
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
  const again = await pawl.runs.rerun(one.runId, { from: "start", input: { n: 2 }, version: 2 });
  same<Equal<typeof again.runId, RunId<typeof double>>>();
  const repeated = await pawl.result((await pawl.runs.rerun("64")).runId);
  same<Equal<typeof repeated, unknown>>();
  // @ts-expect-error: an unknown option
  await pawl.runs.rerun(one.runId, { form: "start" });
  await pawl.start("by-name", { anything: true });
  await pawl.start("by-name");
  await pawl.start(job({ name: "no-input", run: () => 1 }));
  const run: Run = await pawl.runs.get(one.runId);
  void run;
  const waiting = await pawl.start(payment, { id: "p" });
  await pawl.signal(waiting.runId, "paid", { amount: 1 });
  await pawl.signal(waiting.runId, "paid", { amount: 1, at: new Date() }, { dedupKey: "once" });
  await pawl.signal(waiting.runId, "shipped");
  await pawl.signal("64", "anything", { at: "all" });
  await pawl.signal("64", "anything");
  await pawl.signal(other.runId, "undeclared", [1, 2]);
  await pawl.signal(Math.random() > 0.5 ? one.runId : other.runId, "undeclared");
  const cancelled = await pawl.runs.cancel(one.runId, { reason: "enough", cascade: true });
  same<Equal<typeof cancelled.cancelled, number>>();
  const why = await pawl.why(one.runId);
  if (why.reason === "awaiting_signal") same<Equal<typeof why.names, readonly string[]>>();
  await pawl.limits.set("stripe", { allowed: 100, period: "1s" });
  await pawl.start(
    double,
    { n: 1 },
    { partitionKey: "k", rateLimit: { name: "stripe", key: "eu" }, weight: 2 },
  );

  // @ts-expect-error no such signal
  await pawl.signal(waiting.runId, "payed", { amount: 1 });
  // @ts-expect-error wrong payload
  await pawl.signal(waiting.runId, "paid", { amount: "1" });
  // @ts-expect-error the payload is missing
  await pawl.signal(waiting.runId, "paid");
  // @ts-expect-error null is no payload
  await pawl.signal(waiting.runId, "paid", null);
  // @ts-expect-error unknown option
  await pawl.signal(waiting.runId, "paid", { amount: 1 }, { dedup: "once" });
  // @ts-expect-error the reason of this kind has no such member
  if (why.reason === "executing") void why.names;
  // @ts-expect-error unknown option
  await pawl.runs.cancel(one.runId, { because: "enough" });
  // @ts-expect-error a limit needs a period
  await pawl.limits.set("stripe", { allowed: 100 });
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
