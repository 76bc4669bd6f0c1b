/**
 * Data of a page that stay fresh: loads them, and loads them again when the server reports a change
 * (`events.ts`), or every few seconds if no stream is open; but not while the page is hidden or the
 * reader has paused it. The last answers are kept, so that going back shows a page at once; another
 * token may not see them.
 */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, token } from "./client.js";
import { follow, isStreaming, type Watched } from "./events.js";

export interface Loaded<Data> {
  /** undefined: not loaded yet. */
  readonly data: Data | undefined;
  /** The last load failed. Older data may still be there. */
  readonly problem: ApiProblem | undefined;
  readonly reload: () => void;
}

interface State<Data> {
  readonly key: string;
  /** The token that it was loaded with. */
  readonly shown: string | null;
  readonly data: Data | undefined;
  readonly problem?: ApiProblem;
}

/** Whether pages load again by themselves. */
export const isLive = signal(true);

const kept = new Map<string, unknown>();
const maxKept = 50;
token.subscribe(() => kept.clear());
const slowestMs = 30_000;
/** While a stream is open: some data, such as counts, change without an event. */
const streamingMs = 10_000;

/**
 * `key` names the data: with another key, others are loaded. `everyMs` says when to load again;
 * null: never. At changes of the watched runs it loads at once, but at most twice as often; while such
 * a stream is open, it polls rarely.
 */
export function usePolled<Data>(
  key: string,
  load: (aborted: AbortSignal) => Promise<Data>,
  everyMs: (data: Data | undefined) => number | null,
  watch?: Watched,
): Loaded<Data> {
  const shown = token.value;
  const [state, setState] = useState<State<Data>>({
    key,
    shown,
    data: kept.get(key) as Data | undefined,
  });
  const latest = useRef({ load, everyMs });
  latest.current = { load, everyMs };
  const reload = useRef(() => {});
  const live = isLive.value;

  useEffect(() => {
    const aborted = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let data = kept.get(key) as Data | undefined;
    let failures = 0;
    let isLoading = false;
    let loadedAtMs = 0;
    /** Something changed since the last load began. */
    let isStale = false;
    let unfollow: (() => void) | undefined;

    const run = async (): Promise<void> => {
      if (isLoading) return;
      isLoading = true;
      isStale = false;
      loadedAtMs = performance.now();
      clearTimeout(timer);
      try {
        data = await latest.current.load(aborted.signal);
        failures = 0;
        if (token.peek() === shown) keep(key, data);
        if (!aborted.signal.aborted) setState({ key, shown, data });
      } catch (error) {
        if (aborted.signal.aborted) return;
        failures += 1;
        const problem = error instanceof ApiProblem ? error : new ApiProblem(0, "Unexpected", String(error));
        setState({ key, shown, data, problem });
      } finally {
        isLoading = false;
      }
      schedule();
    };
    const schedule = (): void => {
      const ms = latest.current.everyMs(data);
      if (ms === null || !live || aborted.signal.aborted) return;
      clearTimeout(timer);
      const sinceMs = performance.now() - loadedAtMs;
      const paceMs = watch !== undefined && isStreaming.peek() ? Math.max(ms, streamingMs) : ms;
      timer = setTimeout(
        () => {
          if (!document.hidden) void run();
        },
        isStale && failures === 0
          ? Math.max(0, ms / 2 - sinceMs)
          : Math.min(paceMs * 2 ** failures, Math.max(paceMs, slowestMs)),
      );
    };
    const onChange = (): void => {
      if (isStale) return;
      isStale = true;
      if (!isLoading) schedule();
    };
    const listen = (): void => {
      unfollow?.();
      unfollow = undefined;
      if (document.hidden || !live || watch === undefined) return;
      unfollow = follow(watch, onChange);
    };
    const onVisible = (): void => {
      listen();
      if (!document.hidden && live) void run();
    };
    reload.current = () => void run();
    document.addEventListener("visibilitychange", onVisible);
    void run();
    listen();
    return () => {
      unfollow?.();
      aborted.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [key, shown, live]);

  const isCurrent = state.key === key && state.shown === shown;
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
