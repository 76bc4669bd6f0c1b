/**
 * The worker process of a bench. It gets its definitions over IPC, reports when it serves them and
 * when it has executed all expected runs, and stops on request or when its parent ends. Started by
 * `worker-process.ts`.
 */

import { serve, type ServeOptions, type Worker } from "pawl";
import { recordCpuProfile } from "./cpu-profile.js";
import { servable, type Servable } from "./definitions.js";

/** A message from the parent: first the definitions to serve, later the order to stop. */
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

/** The runs executed so far, and the CPU time of the process. */
export interface Progress {
  readonly ended: number;
  readonly cpuMs: number;
}

/** A message to the parent: first that it serves, later that all expected runs were executed. */
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
