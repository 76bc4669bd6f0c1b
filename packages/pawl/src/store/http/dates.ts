/**
 * Answers of a server in the types of the library: JSON has no dates, so they arrive as ISO 8601
 * text. Pure. Used by the transport and the worker store.
 */

import type { ListedStep } from "../journal.js";
import type { StoredSignal } from "../runs.js";
import type { Schedule, ScheduleDetail } from "../schedule-store.js";
import type { ExplainedRun, Run, Step, Why } from "../views.js";

/** The same object with its dates as text. */
export type DatesAsText<T> = T extends unknown
  ? { [K in keyof T]: T[K] extends Date ? string : T[K] extends Date | null ? string | null : T[K] }
  : never;

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));

export function readRun(sent: DatesAsText<Run>): Run {
  return {
    ...sent,
    startedAt: new Date(sent.startedAt),
    completedAt: toDate(sent.completedAt),
    eligibleAt: toDate(sent.eligibleAt),
    expiresAt: toDate(sent.expiresAt),
    deadlineAt: toDate(sent.deadlineAt),
    // A server of an older release does not send it.
    paused: sent.paused ? { ...sent.paused, since: new Date(sent.paused.since) } : null,
    schedule: sent.schedule ? { ...sent.schedule, at: new Date(sent.schedule.at) } : null,
  };
}

const scheduleDates = (sent: DatesAsText<Schedule>) => ({
  pausedAt: toDate(sent.pausedAt),
  setAt: new Date(sent.setAt),
  nextAt: toDate(sent.nextAt),
  lastAt: toDate(sent.lastAt),
  skippedAt: toDate(sent.skippedAt),
});

export function readSchedule(sent: DatesAsText<Schedule>): Schedule {
  return { ...sent, ...scheduleDates(sent) };
}

export function readScheduleDetail<Detail extends ScheduleDetail>(sent: DatesAsText<Detail>): ScheduleDetail {
  const { next } = sent;
  return { ...sent, ...scheduleDates(sent), next: next.map((at) => new Date(at)) };
}

export function readStep(sent: DatesAsText<Step>): Step {
  return {
    ...sent,
    startedAt: new Date(sent.startedAt),
    completedAt: toDate(sent.completedAt),
    dueAt: toDate(sent.dueAt),
  };
}

export function readListedStep(sent: DatesAsText<ListedStep>): ListedStep {
  return { ...sent, startedAt: new Date(sent.startedAt), completedAt: toDate(sent.completedAt) };
}

export function readSignal(sent: DatesAsText<StoredSignal>): StoredSignal {
  return { ...sent, receivedAt: new Date(sent.receivedAt) };
}

export function readWhy(sent: DatesAsText<Why>): Why {
  const { deadlineAt, schedule } = sent;
  return {
    ...readReason(sent),
    ...(deadlineAt === undefined ? {} : { deadlineAt: new Date(deadlineAt) }),
    ...(schedule === undefined ? {} : { schedule: { ...schedule, at: new Date(schedule.at) } }),
  };
}

function readReason(sent: DatesAsText<ExplainedRun>): ExplainedRun {
  switch (sent.reason) {
    case "ended":
      return { ...sent, at: new Date(sent.at) };
    case "executing":
      return { ...sent, leaseUntil: new Date(sent.leaseUntil) };
    case "worker_dead":
      return { ...sent, leaseUntil: toDate(sent.leaseUntil) };
    case "awaiting_signal":
    case "suspended":
      return { ...sent, since: new Date(sent.since), until: toDate(sent.until) };
    case "awaiting_children":
    case "claimable":
    case "paused":
      return { ...sent, since: new Date(sent.since) };
    case "throttled":
    case "not_due":
      return { ...sent, until: new Date(sent.until) };
    case "debounced":
      return { ...sent, until: new Date(sent.until), latest: toDate(sent.latest) };
    case "held":
    case "set_aside":
    case "unserved":
    case "queue_unserved":
    case "key_taken":
    case "limit_full":
      return sent;
    // A reason that only a newer server knows.
    default:
      return sent;
  }
}
