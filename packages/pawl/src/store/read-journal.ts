/** Reads a journal page by page. Used by the engine when it was too big to come along with a claim, and by `check`. */

import type { ListedStep } from "./journal.js";
import type { ClientStore } from "./client-store.js";

export async function readJournal(store: Pick<ClientStore, "journal">, runId: string): Promise<ListedStep[]> {
  const steps: ListedStep[] = [];
  for (let page = await store.journal(runId, ""); page.length > 0;) {
    for (const step of page) steps.push(step);
    page = await store.journal(runId, page.at(-1)!.name);
  }
  return steps;
}
