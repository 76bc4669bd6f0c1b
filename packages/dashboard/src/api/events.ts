/**
 * Follows the changes of runs: reads the server-sent events of `GET /v1/events`, and opens the stream
 * again when it ends. It reads with `fetch`, because an `EventSource` cannot send a token. A stream
 * that cannot be opened is tried again ever more rarely; until then the page polls.
 */

import { signal } from "@preact/signals";
import { callStream } from "./client.js";

/** Which runs to follow: all, those of these filters, or one, with each of its steps. */
export interface Watched {
  readonly name?: string;
  readonly queue?: string;
  readonly status?: string;
  readonly runId?: string;
}

/** Whether a stream is open now, so that changes appear at once. */
export const isStreaming = signal(false);

const againMs = 1_000;
const slowestMs = 60_000;

/** Calls `onChange` after changes, at most once a second. Returns a function that ends it. */
export function follow(watched: Watched, onChange: () => void): () => void {
  const ended = new AbortController();
  let lastId: string | null = null;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const open = async (): Promise<void> => {
    try {
      const stream = await callStream("v1/events", { query: { ...watched }, signal: ended.signal }, lastId);
      failures = 0;
      isStreaming.value = true;
      await readEvents(stream, (event, id) => {
        if (id !== null) lastId = id;
        if (event === "changes" || event === "reset") onChange();
      });
    } catch {
      failures += 1;
    }
    if (ended.signal.aborted) return;
    isStreaming.value = false;
    timer = setTimeout(() => void open(), Math.min(againMs * 4 ** failures, slowestMs));
  };
  void open();
  return () => {
    isStreaming.value = false;
    clearTimeout(timer);
    ended.abort();
  };
}

/** Reads events until the stream ends. Data are not read: a page loads what it shows. */
export async function readEvents(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvent: (event: string, id: string | null) => void,
): Promise<void> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "";
  let id: string | null = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("event:")) event = line.slice(6).trim();
      else if (line.startsWith("id:")) id = line.slice(3).trim();
      else if (line === "" && event !== "") {
        onEvent(event, id);
        event = "";
      }
    }
    // Data of one event are one line: it is not kept whole to find its end.
    if (rest.startsWith("data:") && rest.length > 8) rest = "data:";
  }
}
