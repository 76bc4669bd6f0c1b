/**
 * A saga: books a trip of three parts, and cancels the earlier bookings if one fails. Each booking
 * and each cancellation is a step. So after a crash, also in the middle of the cancellations, it
 * resumes where it stopped.
 */

import { connect, NonRetryable, serve, StepFailed, workflow } from "pawl";

const parts = ["flight", "hotel", "car"] as const;
type Part = (typeof parts)[number];

const trip = workflow({
  name: "trip",
  run: async ({ runId, step }, input: { to: string }) => {
    const begun: Part[] = [];
    const bookings: string[] = [];
    try {
      for (const part of parts) {
        // Noted before the call: if its answer is lost, the part may be booked all the same.
        begun.push(part);
        bookings.push(await step.run(`book-${part}`, () => book(part, input.to, `${runId}/${part}`)));
      }
      return { booked: true, bookings };
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      // This must succeed in the end: many attempts, over days.
      const retry = { attempts: 1_000, backoff: { kind: "exp", base: "1s", max: "10m" } } as const;
      for (const part of begun.toReversed()) {
        await step.run(`cancel-${part}`, () => cancel(part, `${runId}/${part}`), { retry });
      }
      return { booked: false, because: error.message };
    }
  },
});

// The agency. Both calls are idempotent: the same key books once, and a cancellation without a
// booking succeeds.
const booked = new Set<string>();

function book(part: Part, to: string, key: string): string {
  if (part === "car" && to === "Venice") throw new NonRetryable("there are no cars in Venice");
  booked.add(key);
  console.log(`booked a ${part} for ${to}`);
  return `${part} to ${to}`;
}

function cancel(part: Part, key: string): boolean {
  const wasBooked = booked.delete(key);
  console.log(`cancelled the ${part}: ${wasBooked ? "it was booked" : "there was nothing to cancel"}`);
  return wasBooked;
}

const worker = serve([trip]);
const pawl = connect();
for (const to of ["Lisbon", "Venice"]) {
  const { runId } = await pawl.start(trip, { to });
  console.log(await pawl.result(runId));
}
await worker.stop();
await pawl.close();
