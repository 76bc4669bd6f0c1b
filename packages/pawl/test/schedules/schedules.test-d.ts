import { connect, type Json, job, type ScheduleTick, type } from "pawl";
import { describe, expectTypeOf, it } from "vitest";

const cleanup = job({ name: "cleanup", run: (_ctx, input: { days: number }) => input.days });
const plain = job({ name: "plain", run: () => null });
const optional = job({ name: "optional", input: type<{ days: number } | undefined>(), run: () => null });
const { schedules } = connect();

describe("schedules.set", () => {
  it("takes the input of the definition", () => {
    void (() => schedules.set("a", { cron: "@daily", start: cleanup, input: { days: 1 } }));
    // @ts-expect-error the input is required
    void (() => schedules.set("a", { cron: "@daily", start: cleanup }));
    // @ts-expect-error days is a number
    void (() => schedules.set("a", { cron: "@daily", start: cleanup, input: { days: "1" } }));
    void (() => schedules.set("a", { every: "15m", start: plain }));
    void (() => schedules.set("a", { every: "15m", start: optional }));
    void (() => schedules.set("a", { every: "15m", start: "by-name", input: { anything: 1 } }));
  });

  it("takes no option that it decides itself, and no unknown word", () => {
    // @ts-expect-error the schedule makes the key
    void (() => schedules.set("a", { every: "1h", start: plain, options: { idempotencyKey: "k" } }));
    // @ts-expect-error the schedule decides the time
    void (() => schedules.set("a", { every: "1h", start: plain, options: { at: new Date() } }));
    // @ts-expect-error there is no such rule
    void (() => schedules.set("a", { every: "1h", start: plain, overlap: "queue" }));
    // @ts-expect-error a duration has a unit
    void (() => schedules.set("a", { every: "15", start: plain }));
  });

  it("answers with ticks and an input", () => {
    expectTypeOf<Awaited<ReturnType<typeof schedules.get>>["next"]>().toEqualTypeOf<readonly Date[]>();
    expectTypeOf<Awaited<ReturnType<typeof schedules.get>>["input"]>().toEqualTypeOf<Json>();
  });
});

describe("ctx.schedule", () => {
  it("is a tick or null", () => {
    job({
      name: "told",
      run: (ctx) => {
        expectTypeOf(ctx.schedule).toEqualTypeOf<ScheduleTick | null>();
        return null;
      },
    });
  });
});
