/**
 * The outside world as the steps of the demo see it: warehouse, payment provider and carrier. They
 * are in the process of the demo, which counts their requests. So a worker of the demo sends every
 * request as a message to its parent process.
 */

/** A message from a worker to the demo. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "log"; readonly message: string }
  | ({ readonly kind: "request" } & Request);

/** A request of a step. Requests with the same key are repetitions of one request. */
export interface Request {
  readonly id: number;
  readonly key: string;
  readonly runId: string;
  readonly step: "reserve" | "charge" | "pack" | "ship";
  readonly attempt: number;
}

/** A message from the demo to a worker. */
export type ToWorker =
  | { readonly kind: "answer"; readonly id: number; readonly reference: string }
  | { readonly kind: "stop" };

let requests = 0;

/** Sends a request and gives the reference that the outside world answers with. */
export function ask(
  { runId, step, attempt }: Pick<Request, "runId" | "step" | "attempt">,
  key: string,
): Promise<string> {
  const id = ++requests;
  return new Promise((resolve) => {
    const receive = (message: ToWorker): void => {
      if (message.kind !== "answer" || message.id !== id) return;
      process.off("message", receive);
      resolve(message.reference);
    };
    process.on("message", receive);
    tell({ kind: "request", id, key, runId, step, attempt });
  });
}

/** Tells the demo something. */
export function tell(message: FromWorker): void {
  process.send?.(message);
}
