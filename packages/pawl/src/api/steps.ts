/** The journal of a workflow run as people see it: `runs.steps`. Pure mapping between the store and the public API. */

import { fromBase64Url, toBase64Url } from "../values/bytes.js";
import type { ErrorRecord } from "../values/error-record.js";
import { InvalidOption } from "../values/errors.js";
import type { Json } from "../values/json-types.js";
import { show } from "../values/show.js";
import type { ListedStep, StepKind, StepPlace } from "../store/journal.js";
import type { ClientStore } from "../store/store.js";

/** A step of a workflow run. */
export interface Step {
  readonly name: string;
  readonly kind: StepKind;
  readonly status: "pending" | "completed" | "failed";
  /** Its last attempt, counted from 0. */
  readonly attempt: number;
  readonly output: Json | null;
  /** Why it has failed, or failed last. */
  readonly error: ErrorRecord | null;
  /** The run that `step.invoke` has started. */
  readonly childId: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** When a pending step goes on by itself: the end of a sleep, a timeout, the next attempt. */
  readonly dueAt: Date | null;
}

/** A part of the steps of a run. */
export interface StepPage {
  readonly steps: Step[];
  /** For the next page; null at the end. */
  readonly cursor: string | null;
}

/** All recorded steps of a run, in the order in which the body got them, then the pending ones; read page by page. */
export async function listSteps(read: (cursor: string | undefined) => Promise<StepPage>): Promise<Step[]> {
  const byName = new Map<string, Step>();
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await read(cursor);
    for (const step of page.steps) {
      // One that was pending on an earlier page has completed since.
      byName.delete(step.name);
      byName.set(step.name, step);
    }
    cursor = page.cursor;
  }
  const steps = [...byName.values()];
  const isPending = ({ status }: Step): boolean => status === "pending";
  return [...steps.filter((step) => !isPending(step)), ...steps.filter(isPending)];
}

/** A page of at most 16 MiB, in that order. */
export async function stepsPage(
  store: Pick<ClientStore, "steps">,
  runId: string,
  cursor: string | undefined,
): Promise<StepPage> {
  const { steps, last } = await store.steps(runId, cursor === undefined ? null : readPlace(cursor));
  return { steps: steps.map(toStep), cursor: last === null ? null : writePlace(last) };
}

function toStep(step: ListedStep): Step {
  return {
    name: step.name,
    kind: step.kind,
    status: step.completedAt === null ? "pending" : step.error === null ? "completed" : "failed",
    attempt: step.attempt,
    output: step.output,
    error: step.error,
    childId: step.childId,
    startedAt: step.startedAt,
    completedAt: step.completedAt,
    dueAt: step.completedAt !== null || step.dueAt === null ? null : new Date(step.dueAt),
  };
}

function writePlace({ seq, startedAt, name }: StepPlace): string {
  return toBase64Url(JSON.stringify([seq, startedAt, name]));
}

function readPlace(cursor: string): StepPlace {
  try {
    const [seq, startedAt, name] = JSON.parse(fromBase64Url(cursor)) as unknown[];
    const isTime =
      startedAt === null || (typeof startedAt === "string" && !Number.isNaN(Date.parse(startedAt)));
    const isName = name === null ? startedAt === null : typeof name === "string" && !name.includes("\0");
    if (Number.isInteger(seq) && Number(seq) >= 0 && Number(seq) < 2 ** 31 && isTime && isName) {
      return { seq: Number(seq), startedAt, name: name as string | null };
    }
  } catch {
    // Not one of ours: refused below.
  }
  throw new InvalidOption(
    `cursor must be what the page before gave as cursor, unchanged, not ${show(cursor)}`,
  );
}
