import { expect, it } from "vitest";
import { SlowLanes } from "../../dist/timing/slow-lanes.js";

class Busy extends Error {}

/** A call that finds a lock until it is opened. */
function locked<T>(answer: T) {
  let isOpen = false;
  let tries = 0;
  return {
    open: () => void (isOpen = true),
    tries: () => tries,
    call: async (): Promise<T> => {
      tries++;
      await new Promise((resolve) => setImmediate(resolve));
      if (!isOpen) throw new Busy();
      return answer;
    },
  };
}

it("a crowd that waits for one lock does not delay a call that waits for another", async () => {
  const lanes = new SlowLanes({ isBusy: (error) => error instanceof Busy });
  const crowd = locked("crowd");
  const waiting = Promise.all(Array.from({ length: 600 }, () => lanes.run(crowd.call)));
  const other = locked("other");
  const answer = lanes.run(other.call);
  while (other.tries() < 3) await new Promise((resolve) => setTimeout(resolve, 1));
  other.open();
  expect(await answer).toBe("other");
  crowd.open();
  expect(new Set(await waiting)).toEqual(new Set(["crowd"]));
});

it("an error that is no lock ends the call alone that has it", async () => {
  const lanes = new SlowLanes({ isBusy: (error) => error instanceof Busy });
  const other = locked("other");
  const answer = lanes.run(other.call);
  await expect(lanes.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  other.open();
  expect(await answer).toBe("other");
});
