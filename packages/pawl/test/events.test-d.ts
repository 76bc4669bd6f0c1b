/** What listeners know of an event by its name. Compiled, never run. */

import { type EventMap, job, serve } from "pawl";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(): T | undefined => undefined;

const worker = serve([job({ name: "a", run: () => null })]);

const off = worker.on("step.completed", (event) => {
  same<Equal<typeof event.step, string>>();
  same<Equal<typeof event.kind, "run" | "sleep" | "wait" | "invoke" | "transaction">>();
  same<Equal<typeof event.durationMs, number | null>>();
  // @ts-expect-error: a step has no status
  return event.status;
});
same<Equal<typeof off, () => void>>();

worker.once("run.completed", ({ status }) => {
  same<Equal<typeof status, "completed" | "failed" | "cancelled">>();
});
worker.on("run.failed", ({ step, code, error }) => {
  same<Equal<typeof step, string | null>>();
  same<Equal<typeof code, string>>();
  // Anything may be thrown.
  same<Equal<typeof error, unknown>>();
});
worker.on("step.failed", ({ error }) => same<Equal<typeof error, unknown>>());
// @ts-expect-error: there is no such event
worker.on("step.complete", () => {});
// @ts-expect-error: this event has other fields
worker.on("claim", (event: { runId: string }) => event);
worker.off("run.started", (event) => {
  same<Equal<typeof event, EventMap["run.started"]>>();
});
