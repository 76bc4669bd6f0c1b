/** Reads a journal page by page. Used when it was too large for the answer of a claim. */

import type { ListedStep } from "./journal.js";
import type { WorkerStore } from "./worker-store.js";

export async function readJournal(store: Pick<WorkerStore, "journal">, runId: string): Promise<ListedStep[]> {
  const steps: ListedStep[] = [];
  for (let page = await store.journal(runId, ""); page.length > 0;) {
    for (const step of page) steps.push(step);
    page = await store.journal(runId, page.at(-1)!.name);
  }
  return steps;
}
