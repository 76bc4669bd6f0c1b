/**
 * Definitions to play with: `npm start` in the repository serves them (`pawl dev --watch`). Change
 * one while it runs, and start another run. A file like this exports definitions and does nothing
 * else.
 */

import { job, machine, signal, type, workflow } from "pawl";

/**
 * Signs a user up: pawl runs start signup '{"email":"ada@example.com"}', then pawl runs signal
 * <run> verified.
 */
export const signup = workflow({
  name: "signup",
  signals: { verified: signal<object>() },
  run: async ({ step }, input: { email: string }) => {
    const userId = await step.run("create-user", () => 42);
    await step.sleep("settle-in", "2s");
    await step.run("send-welcome", () => console.log(`signup: a welcome to ${input.email}`));
    const verified = await step.waitForEvent("verified", { timeout: "1h" });
    return { userId, verified: verified !== null };
  },
});

/** Fails once, and is tried again: pawl runs start greet '{"name":"Ada"}' --wait. */
export const greet = job({
  name: "greet",
  backoff: () => "500ms",
  run: (ctx, input: { name: string }) => {
    if (ctx.attempt === 0) throw new Error("the first attempt always fails");
    return `Hello, ${input.name}!`;
  },
});

/**
 * Waits for its payment: pawl runs start order '{"item":"ratchet"}', then pawl runs signal <run>
 * paid '{"euros":25}'.
 */
export const order = machine({
  name: "order",
  state: type<{ item: string; reservation?: string }>(),
  signals: { paid: signal<{ euros: number }>() },
  initial: "reserve",
  steps: {
    reserve: (ctx) => ctx.next("wait", { ...ctx.state, reservation: `R-${ctx.runId}` }),
    wait: (ctx) => ctx.awaitSignal("paid", "ship", ctx.state, { timeout: "1h" }),
    ship: (ctx) => {
      const [payment] = ctx.awaited;
      if (payment === undefined) return ctx.stop("not paid within an hour");
      return ctx.done({ item: ctx.state.item, euros: payment.payload.euros });
    },
  },
});
