/**
 * Data of a page that stay fresh: loads them, and loads them again every few seconds, but not while
 * the page is hidden or the reader has paused it. The last answers are kept, so that going back
 * shows a page at once.
 */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, token } from "./client.js";

export interface Loaded<Data> {
  /** undefined: not loaded yet. */
  readonly data: Data | undefined;
  /** The last load failed. Older data may still be there. */
  readonly problem: ApiProblem | undefined;
  readonly reload: () => void;
}

/** Whether pages load again by themselves. */
export const isLive = signal(true);

const kept = new Map<string, unknown>();
const maxKept = 50;
const slowestMs = 30_000;

/**
 * `key` names the data: with another key, others are loaded. `everyMs` says when to load again;
 * null: never.
 */
export function usePolled<Data>(
  key: string,
  load: (aborted: AbortSignal) => Promise<Data>,
  everyMs: (data: Data | undefined) => number | null,
): Loaded<Data> {
  const [state, setState] = useState<{ key: string; data: Data | undefined; problem?: ApiProblem }>({
    key,
    data: kept.get(key) as Data | undefined,
  });
  const latest = useRef({ load, everyMs });
  latest.current = { load, everyMs };
  const reload = useRef(() => {});
  const shown = token.value;
  const live = isLive.value;

  useEffect(() => {
    const aborted = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let data = kept.get(key) as Data | undefined;
    let failures = 0;
    let isLoading = false;

    const run = async (): Promise<void> => {
      if (isLoading) return;
      isLoading = true;
      clearTimeout(timer);
      try {
        data = await latest.current.load(aborted.signal);
        failures = 0;
        keep(key, data);
        if (!aborted.signal.aborted) setState({ key, data });
      } catch (error) {
        if (aborted.signal.aborted) return;
        failures += 1;
        const problem = error instanceof ApiProblem ? error : new ApiProblem(0, "Unexpected", String(error));
        setState({ key, data, problem });
      } finally {
        isLoading = false;
      }
      schedule();
    };
    const schedule = (): void => {
      const ms = latest.current.everyMs(data);
      if (ms === null || !live || aborted.signal.aborted) return;
      timer = setTimeout(
        () => {
          if (!document.hidden) void run();
        },
        Math.min(ms * 2 ** failures, Math.max(ms, slowestMs)),
      );
    };
    const onVisible = (): void => {
      if (!document.hidden && live) void run();
    };
    reload.current = () => void run();
    document.addEventListener("visibilitychange", onVisible);
    void run();
    return () => {
      aborted.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, shown, live]);

  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : (kept.get(key) as Data | undefined),
    problem: isCurrent ? state.problem : undefined,
    reload: () => reload.current(),
  };
}

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, data);
  const [oldest] = kept.keys();
  if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
}
