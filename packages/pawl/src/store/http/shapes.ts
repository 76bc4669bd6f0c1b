/** What a server answers, in the types of the library: dates come as texts. Pure. */

import type { Run } from "../../api/runs.js";
import type { Step } from "../../api/steps.js";
import type { Why } from "../../api/why.js";

/** The same with every date as its ISO 8601 text. */
export type Sent<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Sent<Item>[]
    : T extends object
      ? { [K in keyof T]: Sent<T[K]> }
      : T;

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function reviveRun(sent: Omit<Run, RunDates> & Sent<Pick<Run, RunDates>>): Run {
  return {
    ...sent,
    startedAt: new Date(sent.startedAt),
    completedAt: toDate(sent.completedAt),
    eligibleAt: toDate(sent.eligibleAt),
    expiresAt: toDate(sent.expiresAt),
  };
}

type RunDates = "startedAt" | "completedAt" | "eligibleAt" | "expiresAt";
export type SentRun = Parameters<typeof reviveRun>[0];

export function reviveStep(sent: Omit<Step, StepDates> & Sent<Pick<Step, StepDates>>): Step {
  return {
    ...sent,
    startedAt: new Date(sent.startedAt),
    completedAt: toDate(sent.completedAt),
    dueAt: toDate(sent.dueAt),
  };
}

type StepDates = "startedAt" | "completedAt" | "dueAt";
export type SentStep = Parameters<typeof reviveStep>[0];

const whyDates = ["at", "leaseUntil", "since", "until"] as const;

export function reviveWhy(sent: Readonly<Record<string, unknown>>): Why {
  const dates = whyDates.flatMap((name) => {
    const text = sent[name];
    return typeof text === "string" ? [[name, new Date(text)] as const] : [];
  });
  return { ...sent, ...Object.fromEntries(dates) } as unknown as Why;
}
