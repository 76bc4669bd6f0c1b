/**
 * The worker process of a bench: serves what it is told over IPC, says when it does and when all
 * expected runs have been through its hands, and stops when told to, or when its parent is gone.
 * Started by `worker-process.ts`.
 */

import { serve, type ServeOptions, type Worker } from "pawl";
import { recordCpuProfile } from "./cpu-profile.js";
import { servable, type Servable } from "./definitions.js";

/** What the parent sends: first what to serve, later the order to stop. */
export type Order =
  | {
      readonly kind: "serve";
      readonly url: string;
      readonly definition: Servable;
      readonly concurrency: number;
      /** Beside the URL and the default queue, which they may replace. */
      readonly options: ServeOptions;
      /** How many runs to wait for. */
      readonly expected: number;
      /** Where to write a CPU profile of the work. */
      readonly profilePath: string | undefined;
      /** Whether to tell all the time how far it is. */
      readonly tellsProgress: boolean;
    }
  | { readonly kind: "stop" };

/** What has been executed so far, and the CPU time that the process has used. */
export interface Progress {
  readonly ended: number;
  readonly cpuMs: number;
}

/** What the worker answers: first that it serves, later that all expected runs were executed. */
export type Report =
  | { readonly kind: "ready" }
  | ({ readonly kind: "progress" } & Progress)
  | { readonly kind: "executed"; readonly cpuMs: number }
  | { readonly kind: "failed"; readonly message: string };

const lookMs = 10;

let worker: Worker | undefined;

async function work(order: Extract<Order, { kind: "serve" }>): Promise<void> {
  let ended = 0;
  const onEnd = (): void => void ended++;
  const stopProfile = order.profilePath === undefined ? undefined : await recordCpuProfile(order.profilePath);
  const cpuBefore = process.cpuUsage();
  worker = serve(servable[order.definition](onEnd), {
    url: order.url,
    queues: { default: order.concurrency },
    ...order.options,
  });
  await worker.ready;
  report({ kind: "ready" });
  const used = (): number => {
    const { user, system } = process.cpuUsage(cpuBefore);
    return (user + system) / 1_000;
  };
  if (order.tellsProgress) {
    setInterval(() => report({ kind: "progress", ended, cpuMs: used() }), lookMs).unref();
  }
  while (ended < order.expected) await new Promise((resolve) => setTimeout(resolve, lookMs));
  const cpuMs = used();
  await stopProfile?.();
  report({ kind: "executed", cpuMs });
}

function report(message: Report): void {
  process.send?.(message);
}

process.on("message", (order: Order) => {
  if (order.kind === "serve") {
    work(order).catch((error: unknown) => {
      report({
        kind: "failed",
        message: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    });
  } else {
    void (worker?.stop() ?? Promise.resolve()).finally(() => process.disconnect());
  }
});
process.on("disconnect", () => process.exit());
