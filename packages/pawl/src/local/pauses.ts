/**
 * Pauses and resumes for callers of this process. Repeats the call while another transaction has
 * the run locked. Tells the workers of this process when something is resumed; workers of other
 * processes find it with their next poll. A pause needs no such hint: the database tells each
 * worker with the answer to its next claim, commit or journal entry. `actor` names the caller for
 * the action log. Used by the Postgres transport.
 */

import { hostname, userInfo } from "node:os";
import type { Actor } from "../store/client-store.js";
import type { PauseAnswer, PausedRuns, PauseStore, PauseTransport } from "../store/pauses.js";
import { RetryDelay } from "../timing/retry-delay.js";
import type { Hub } from "./hub.js";

export function pausesOver(store: PauseStore, hub: Hub, actor: () => Actor): PauseTransport {
  return {
    async pauseRun(runId, { by, reason }) {
      const request = { by: by ?? thisUser(), reason };
      const { run } = await untilFree(() => store.pauseRuns([runId], request, actor()));
      if (run.verdict === "changed") hub.emit("run.paused", { runId, name: run.name ?? "", by: request.by });
      return run;
    },
    async resumeRun(runId) {
      const { run, claimable } = await untilFree(() => store.resumeRuns([runId], actor()));
      hub.claimable(claimable);
      if (run.verdict === "changed") hub.emit("run.resumed", { runId, name: run.name ?? "" });
      return run;
    },
    async pause(target, { by, reason }) {
      return { changed: await store.addPause(target, { by: by ?? thisUser(), reason }, actor()) };
    },
    async resume(target) {
      const answer = await store.removePauses(target, actor());
      hub.hint(target.scope === "queue" ? target.name : null);
      if (target.scope === "queue") hub.visible(target.name, { isOld: true });
      return answer;
    },
    list: () => store.pauses(),
  };
}

/** The default of `by`: the user of the operating system and the machine. */
function thisUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A user id without a name, as in some containers.
    return hostname();
  }
}

/** The answer for one run, once no other transaction has it locked. */
async function untilFree(call: () => Promise<PausedRuns>): Promise<{
  run: PauseAnswer & { readonly name: string | null };
  claimable: PausedRuns["claimable"];
}> {
  const delay = new RetryDelay();
  for (;;) {
    const { runs, claimable } = await call();
    const { verdict, phase, name } = runs[0]!;
    if (verdict !== "busy") return { run: { verdict, phase, name }, claimable };
    await new Promise((resolve) => setTimeout(resolve, delay.next()));
  }
}
