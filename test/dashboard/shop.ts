/** A small shop whose runs the dashboard shows: some wait, some fail, some have ended. */

import { child, job, machine, NonRetryable, type Pawl, signal, type, workflow } from "pawl";
import { until } from "../support/until.js";

const signup = workflow({
  name: "signup",
  signals: { verified: signal<{ by: string }>() },
  run: async ({ step }, input: { email: string }) => {
    const userId = await step.run("create-user", () => 42);
    await step.run(
      "send-welcome",
      async ({ attempt }) => {
        await pause(60);
        if (attempt === 0) throw new Error("mail server answered 421 try again later");
        return { to: input.email, messageId: "m-1" };
      },
      { retry: { backoff: { kind: "fixed", base: 120 } } },
    );
    await step.sleep("settle-in", "2s");
    const verified = await step.waitForEvent("verified", { timeout: "3d" });
    await step.run("open-account", () => pause(80));
    return { userId, verified: verified !== null };
  },
});

const charge = job({
  name: "charge",
  maxAttempts: 1,
  run: (_ctx, input: { order: string; euros: number }) => {
    if (input.euros > 100) {
      throw new NonRetryable(`the card of order ${input.order} was declined: <b>limit</b> exceeded`, {
        cause: new TypeError("amount too large"),
      });
    }
    return { receipt: `R-${input.order}`, euros: input.euros };
  },
});

const order = machine({
  name: "order",
  state: type<{ item: string; reservation?: string; euros?: number }>(),
  signals: { paid: signal<{ euros: number }>() },
  initial: "reserve",
  steps: {
    reserve: (ctx) =>
      ctx.state.item === ""
        ? ctx.next("refuse", ctx.state)
        : ctx.next("await-payment", { ...ctx.state, reservation: `R-${ctx.runId}` }),
    "await-payment": (ctx) => ctx.awaitSignal("paid", "check", ctx.state, { timeout: "1h" }),
    check: (ctx) => {
      if (ctx.timedOut) return ctx.next("remind", ctx.state);
      return ctx.next("ship", { ...ctx.state, euros: ctx.awaited[0]?.payload.euros ?? 0 });
    },
    remind: (ctx) => ctx.next(ctx.attempt > 3 ? "refuse" : "await-payment", ctx.state),
    ship: (ctx) => ctx.done({ item: ctx.state.item, euros: ctx.state.euros ?? 0 }),
    refuse: (ctx) => ctx.stop("not paid"),
  },
});

const resize = job({
  name: "resize",
  queue: "images",
  maxAttempts: 1,
  run: async (_ctx, input: { image: string }) => {
    await pause(150);
    if (!input.image.endsWith(".png")) throw new NonRetryable(`${input.image} is no image`);
    return `${input.image}@640`;
  },
});

const album = machine({
  name: "album",
  state: type<{ images: string[] }>(),
  initial: "resize",
  steps: {
    resize: (ctx) =>
      ctx.spawn(
        "publish",
        ctx.state.images.map((image) => child(resize, { image })),
        ctx.state,
      ),
    publish: (ctx) => ctx.done({ files: ctx.children.length }),
  },
});

export const shop = [signup, charge, order, resize, album];

/** The runs of interest, by what they are. */
export interface Stocked {
  readonly signup: string;
  readonly ended: string;
  readonly order: string;
  readonly failed: string;
  readonly album: string;
  readonly unserved: string;
}

/** Every page of the dashboard that shows these runs. */
export const everyPage = (runs: Stocked): string[] => [
  "",
  "runs",
  `runs/${runs.signup}`,
  `runs/${runs.failed}`,
  `runs/${runs.album}`,
  `runs/${runs.order}`,
  "waiting",
  "definitions",
  "definitions/order",
  "schedules",
  "schedules/nightly-charge",
  "queues",
  "keys",
  "limits",
  "workers",
  "doctor",
  "actions",
];

/** Starts runs of every kind and waits until each is where the tests want it. */
export async function stock(pawl: Pawl): Promise<Stocked> {
  await pawl.limits.set("mail", { allowed: 100, period: "1m" });
  await pawl.limits.set("card-network", { allowed: 5, period: "1s" });
  await pawl.limits.set("reports", { concurrent: 2 });
  await pawl.schedules.set("nightly-charge", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    start: charge,
    input: { order: "subscription", euros: 9 },
  });
  await pawl.schedules.trigger("nightly-charge");
  await pawl.schedules.set("resize-all", { every: "15m", start: resize, input: { image: "all.png" } });
  await pawl.schedules.pause("resize-all");
  await pawl.queues.pause("exports", { by: "ada", reason: "the warehouse is down" });
  for (const n of [1, 2, 3]) await pawl.queues.send("webhooks", { n });
  const { runId: ended } = await pawl.start(signup, { email: "grace@example.com" });
  const { runId: albumId } = await pawl.start(album, { images: ["a.png", "notes.txt", "b.png"] });
  for (const n of [17, 18, 19]) await pawl.start(charge, { order: `A-${n}`, euros: n });
  for (const n of [20, 21]) await pawl.start(charge, { order: `A-${n}`, euros: 900 });
  const { runId: failed } = await pawl.start(
    charge,
    { order: "A-22", euros: 250 },
    { tags: { customer: "42" } },
  );
  const { runId: unserved } = await pawl.start("invoice", { order: "A-17" }, { queue: "billing" });
  await pawl.start(charge, { order: "A-40", euros: 12 }, { delay: "2h" });
  const { runId: cancelled } = await pawl.start(order, { item: "spring" });
  await pawl.runs.cancel(cancelled, { reason: "ordered twice" });
  await pawl.signal(ended, "verified", { by: "mail" });
  const { runId: signupId } = await pawl.start(signup, { email: "ada@example.com" });
  const { runId: orderId } = await pawl.start(order, { item: "ratchet" });
  const isAt = (runId: string, step: string) => async (): Promise<boolean> =>
    (await pawl.runs.steps(runId)).some(({ name }) => name === step);
  await pawl.result(ended);
  await pawl.result(albumId);
  await pawl.result(failed).catch(() => {});
  await until("the sign-up waits", isAt(signupId, "verified"));
  await until("the order waits", async () => (await pawl.runs.get(orderId)).phase === "awaiting_signal");
  return { signup: signupId, ended, order: orderId, failed, album: albumId, unserved };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
