/**
 * `runs.steps`: maps the journal of a workflow run to the steps that users read, page by page, with
 * cursors. Used by the client, its Postgres transport and the server.
 */

import { fromBase64Url, toBase64Url } from "../values/bytes.js";
import { InvalidOption } from "../values/errors.js";
import { show } from "../values/show.js";
import type { ListedStep, StepCursor } from "../store/journal.js";
import type { ClientStore } from "../store/client-store.js";
import type { Step, StepPage } from "../store/views.js";

export type { Step, StepPage } from "../store/views.js";

/** All recorded steps of a run in the order in which the body got them, then the pending ones. */
export async function listSteps(read: (cursor: string | undefined) => Promise<StepPage>): Promise<Step[]> {
  const byName = new Map<string, Step>();
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await read(cursor);
    for (const step of page.steps) {
      // A step that was pending on an earlier page may have completed since.
      byName.delete(step.name);
      byName.set(step.name, step);
    }
    cursor = page.cursor;
  }
  const steps = [...byName.values()];
  const isPending = ({ status }: Step): boolean => status === "pending";
  return [...steps.filter((step) => !isPending(step)), ...steps.filter(isPending)];
}

/** A page of at most 16 MiB, in the same order. */
export async function stepsPage(
  store: Pick<ClientStore, "steps">,
  runId: string,
  cursor: string | undefined,
): Promise<StepPage> {
  const { steps, last } = await store.steps(runId, cursor === undefined ? null : readCursor(cursor));
  return { steps: steps.map(toStep), cursor: last === null ? null : writeCursor(last) };
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

function writeCursor({ seq, startedAt, name }: StepCursor): string {
  return toBase64Url(JSON.stringify([seq, startedAt, name]));
}

function readCursor(cursor: string): StepCursor {
  try {
    const [seq, startedAt, name] = JSON.parse(fromBase64Url(cursor)) as unknown[];
    const isTime =
      startedAt === null || (typeof startedAt === "string" && !Number.isNaN(Date.parse(startedAt)));
    const isName = name === null ? startedAt === null : typeof name === "string" && !name.includes("\0");
    if (Number.isInteger(seq) && Number(seq) >= 0 && Number(seq) < 2 ** 31 && isTime && isName) {
      return { seq: Number(seq), startedAt, name: name as string | null };
    }
  } catch {
    // Not a cursor of ours: refused below.
  }
  throw new InvalidOption(`cursor must be the unchanged cursor of the page before, not ${show(cursor)}`);
}
