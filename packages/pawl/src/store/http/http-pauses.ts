/** Pauses through a server: each call is a call of its REST API. Only encodes and decodes. */

import type { PauseAnswer, PauseTarget, PauseTransport, StoredPause } from "../pauses.js";
import type { Caller } from "./caller.js";
import type { DatesAsText } from "./dates.js";

export function httpPauses(caller: Caller): PauseTransport {
  // A call that is repeated changes nothing more.
  const post = <Answer>(path: string, body: object): Promise<Answer> =>
    caller.call("POST", path, { body, repeatable: true });
  const run = async (path: string, body: object): Promise<PauseAnswer> => {
    const { changed } = await post<{ changed: boolean }>(path, body);
    return { verdict: changed ? "changed" : "already", phase: null };
  };
  return {
    pauseRun: (runId, request) => run(`/v1/runs/${runId}/pause`, bodyOf(request)),
    resumeRun: (runId) => run(`/v1/runs/${runId}/resume`, {}),
    pause: (target, request) => post(`${pathOf(target)}/pause`, { ...bodyOf(request), ...versionOf(target) }),
    resume: (target) => post(`${pathOf(target)}/resume`, versionOf(target)),
    async list() {
      const { pauses } = await caller.call<{ pauses: DatesAsText<StoredPause>[] }>("GET", "/v1/pauses");
      return pauses.map((pause) => ({ ...pause, since: new Date(pause.since) }));
    },
  };
}

const pathOf = ({ scope, name }: PauseTarget): string =>
  `/v1/${scope === "queue" ? "queues" : "definitions"}/${encodeURIComponent(name)}`;

const versionOf = ({ version }: PauseTarget): object => (version === null ? {} : { version });

function bodyOf({ by, reason }: { by: string | null; reason: string | null }): object {
  return { ...(by === null ? {} : { by }), ...(reason === null ? {} : { reason }) };
}
