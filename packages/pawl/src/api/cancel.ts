/** `runs.cancel`: its options and its answer. Used by the client. */

import type { ClientTransport } from "../store/client-transport.js";
import { InvalidOption, RunEnded } from "../values/errors.js";
import { checkOptions, checkString } from "../values/options.js";
import { statusOf } from "../values/phase.js";
import { show } from "../values/show.js";
import type { Cancelled } from "./pawl.js";
import { notFound } from "../values/run-id.js";

export function checkCancel(options: unknown): { reason: string | null; cascade: boolean } {
  const { reason, cascade = false } = checkOptions(
    options,
    ["reason", "cascade"],
    "the options of runs.cancel",
  );
  if (typeof cascade !== "boolean") {
    throw new InvalidOption(`cascade must be true or false, not ${show(cascade)}`);
  }
  return {
    reason: reason === undefined ? null : checkString(reason, "reason", { maxBytes: 8_192 }),
    cascade,
  };
}

/** How many runs were cancelled. Throws if the run does not exist, or has ended otherwise. */
export function toCancelled(
  runId: string,
  { verdict, phase, cancelled }: Awaited<ReturnType<ClientTransport["cancel"]>>,
): Cancelled {
  switch (verdict) {
    case "not_found":
      throw notFound(runId);
    case "ended":
      throw new RunEnded(
        `run ${runId} has already ended (${phase === null ? "unknown" : statusOf(phase)}) and cannot be cancelled`,
      );
    case "cancelled":
    case "already":
      return { cancelled };
  }
}
