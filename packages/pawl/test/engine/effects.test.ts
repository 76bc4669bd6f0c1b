/** The one switch from a committed transition to hints and events, for local and remote workers. */

import { describe, expect, it } from "vitest";
import { Hub, type LocalWorker } from "../../dist/local/hub.js";
import { effectsOf, sendHints } from "../../dist/run/effects.js";
import type { NewRun, Transition } from "../../dist/store/store.js";

const childOf = (queue: string | null): NewRun => ({
  name: "child",
  version: null,
  kind: null,
  queue,
  priority: null,
  input: "null",
  step: null,
  delayMs: null,
  at: null,
  retentionMs: null,
  idempotencyKey: null,
  uniqueKey: null,
  uniqueScope: null,
  partitionKey: null,
  rateLimit: null,
  weight: null,
  trace: null,
  direct: false,
  options: null,
});

/** Two workers of one process: what each of them is told. */
function listening(): { hub: Hub; told: string[][] } {
  const hub = new Hub();
  const told = ["first", "second"].map(() => {
    const heard: string[] = [];
    const worker: LocalWorker = {
      reserve: () => null,
      offer: () => null,
      hint: (queue) => void heard.push(`work in ${queue ?? "any queue"}`),
      expect: (queue, delayMs) => void heard.push(`due in ${queue} after ${delayMs} ms`),
      lower: () => {},
      delivered: (runId) => void heard.push(`delivered to ${runId}`),
      cancel: () => {},
      overdue: () => {},
    };
    hub.workers.add(worker);
    return heard;
  });
  return { hub, told };
}

/** The hints of a transition of run 64, whose parent is run 128. */
function hintsOf(transition: Transition, suspendedMs: number | null = null): string[] {
  const { hub, told } = listening();
  const ended: string[] = [];
  hub.onEnd("64", (run) => void ended.push(`ended as ${run.phase}`));
  const commit = { runId: "64", queue: "q", parentId: "128", transition };
  sendHints(hub, commit, effectsOf(commit, suspendedMs));
  // Every worker of the process is told, not only the one that committed.
  expect(told[1]).toEqual(told[0]);
  return [...told[0]!, ...ended];
}

const next: Transition = {
  kind: "next",
  step: "b",
  state: null,
  priority: null,
  partitionKey: undefined,
  rateLimit: null,
  weight: null,
  consumed: [],
};
const suspend: Transition = { kind: "suspend", names: [], matches: {}, after: 0, dueAt: null, steps: [] };
const wait = { kind: "await", step: "b", state: null, names: ["paid"], match: null, shown: [] } as const;

describe("a committed transition", () => {
  it.each<[Transition, number | null, string[]]>([
    [{ kind: "keep", step: "b", state: null, consumed: [] }, null, []],
    [next, null, ["due in q after 0 ms"]],
    [{ kind: "retry", step: "a", state: null, delayMs: 50, error: null }, null, ["due in q after 50 ms"]],
    [{ ...wait, delayMs: null }, null, []],
    [{ ...wait, delayMs: 70 }, null, ["due in q after 70 ms"]],
    [suspend, null, []],
    [suspend, 90, ["due in q after 90 ms"]],
    [
      { kind: "spawn", step: "b", state: null, children: ["x", "x", null].map(childOf), consumed: [] },
      null,
      ["work in x", "work in any queue"],
    ],
    [{ kind: "done", step: null, result: "1" }, null, ["delivered to 128", "ended as done"]],
    [{ kind: "stop", step: null, error: "{}" }, null, ["delivered to 128", "ended as failed"]],
  ])("tells every worker of the process: %j", (transition, suspendedMs, hints) => {
    expect(hintsOf(transition, suspendedMs)).toEqual(hints);
  });

  it("names the event of its step", () => {
    const stepOf = (transition: Transition): string => effectsOf({ runId: "64", transition }, null).step;
    expect(stepOf(next)).toBe("step.completed");
    expect(stepOf({ kind: "retry", step: null, state: null, delayMs: 1, error: "{}" })).toBe("step.retried");
    expect(stepOf({ kind: "stop", step: null, error: "{}" })).toBe("step.failed");
  });
});
