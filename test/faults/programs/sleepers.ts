/**
 * A worker process whose workflows suspend, each in one of several ways, and that counts how many of their bodies are still in memory.
 * Answers each message with that count, after garbage collections until it does not fall any more.
 */

import { setTimeout as pause } from "node:timers/promises";
import { serve, workflow } from "pawl";

let made = 0;
let collected = 0;
let finished = 0;
const registry = new FinalizationRegistry<null>(() => collected++);

const sleeper = workflow({
  name: "sleeper",
  run: async ({ step, signal }, way: number) => {
    // Whatever holds the suspended function holds this.
    const witness = { way, ballast: Array.from({ length: 100 }, () => way) };
    registry.register(witness, null);
    made++;
    signal.addEventListener("abort", () => witness.ballast.push(1));
    try {
      await step.run("before", ({ signal: own }) => {
        own.addEventListener("abort", () => witness.ballast.push(2));
      });
      const never = way % 4 === 3 ? step.waitForEvent("never") : null;
      if (way % 4 === 0) await step.sleep("sleep", "1d");
      else if (way % 4 === 1) await step.waitForEvent("event", { timeout: "1d" });
      else if (way % 4 === 2) {
        await step.run("flaky", () => Promise.reject(new Error("later")), {
          retry: { backoff: { base: "1d", max: "1d" } },
        });
      } else await Promise.race([never, step.invoke("child", "nobody-serves-this")]);
      return witness.ballast.length;
    } finally {
      finished++;
    }
  },
});

const worker = serve([sleeper], { queues: { default: 200 }, sweepInterval: false });
await worker.ready;

async function count(): Promise<void> {
  for (let quiet = 0, before = collected; quiet < 5; quiet = collected === before ? quiet + 1 : 0) {
    before = collected;
    globalThis.gc!();
    // Finalizers run as tasks of their own.
    await pause(20);
  }
  process.send!({ made, alive: made - collected, finished });
}
process.on("message", () => void count());
process.send!("ready");
