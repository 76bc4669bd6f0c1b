/** The status of a run or a step, with a shape and a color of its own. */

import type { JSX } from "preact";
import { now } from "../api/clock.js";
import type { Run, Step } from "../api/types.js";
import { icons } from "./icons.js";

export type Look =
  | "completed"
  | "failed"
  | "cancelled"
  | "executing"
  | "queued"
  | "delayed"
  | "waiting"
  | "paused"
  | "children";

const words: Readonly<Record<Look, string>> = {
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
  executing: "Executing",
  queued: "Queued",
  delayed: "Delayed",
  waiting: "Waiting",
  paused: "Paused",
  children: "Waits for children",
};

export function lookOf({ phase, eligibleAt, paused }: Pick<Run, "phase" | "eligibleAt" | "paused">): Look {
  // A step that is being executed finishes first.
  if (paused !== null && phase !== "executing") return "paused";
  switch (phase) {
    case "done":
      return "completed";
    case "failed":
    case "cancelled":
    case "executing":
      return phase;
    case "awaiting_signal":
      return "waiting";
    case "awaiting_children":
      return "children";
    case "runnable":
      return eligibleAt !== null && Date.parse(eligibleAt) > now.value + 500 ? "delayed" : "queued";
  }
}

export function lookOfStep({ status, kind }: Pick<Step, "status" | "kind">): Look {
  if (status !== "pending") return status;
  return kind === "run" || kind === "transaction" ? "delayed" : kind === "sleep" ? "delayed" : "waiting";
}

export function Badge({ look, text }: { look: Look; text?: string }): JSX.Element {
  return (
    <span class={`badge is-${look}`}>
      {icons[look]}
      {text ?? words[look]}
    </span>
  );
}

export function RunBadge({ run }: { run: Run }): JSX.Element {
  return <Badge look={lookOf(run)} />;
}
