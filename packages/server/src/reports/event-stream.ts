/**
 * One stream of server-sent events: filters the changes of the feed, and writes them in messages of at
 * most 100 events, one a second. It is bounded: a reader that falls behind, or one that stays for
 * a quarter of an hour, gets an `end` with the reason, and may come back with the id of the last
 * message. A comment every 15 s keeps the connection open. Made by the route `GET /v1/events`.
 */

import { PassThrough, type Readable } from "node:stream";
import type { ChangePosition, Changes, RunChange } from "pawl/engine";
import { type ChangeListener, maxChanges } from "./change-feed.js";

export interface EventFilter {
  readonly name: string | undefined;
  readonly queue: string | undefined;
  readonly status: string | undefined;
  /** Every change of these runs, and of no others; none: starts and ends of all runs. */
  readonly runIds: readonly string[];
  /** Whether the caller may see a run. */
  readonly allows: (run: { readonly name: string; readonly queue: string }) => boolean;
  /** The token sees a part only: it does not learn how busy the others are. */
  readonly isPart: boolean;
}

export interface StreamLimits {
  readonly heartbeatMs: number;
  readonly lifeMs: number;
  /** A stream with more unread bytes than this ends. */
  readonly maxUnreadBytes: number;
}

const streamLimits: StreamLimits = {
  heartbeatMs: 15_000,
  lifeMs: 15 * 60_000,
  maxUnreadBytes: 256 * 1_024,
};

/** How long a reader has to read the end of its stream. */
const farewellMs = 5_000;

/** Why the server ends a stream. */
export type EndReason = "slow" | "expired" | "closing";

export class EventStream implements ChangeListener {
  readonly watched: readonly string[];
  readonly #filter: EventFilter;
  readonly #limits: StreamLimits;
  readonly #body = new PassThrough();
  /** The last mark of each watched run. */
  readonly #marks = new Map<string, string>();
  readonly #timers: readonly NodeJS.Timeout[];
  /** The last position that the feed told. */
  #position: ChangePosition | undefined;

  constructor(filter: EventFilter, limits: StreamLimits = streamLimits) {
    this.#filter = filter;
    this.#limits = limits;
    this.watched = filter.runIds;
    const heartbeat = setInterval(() => this.#write(":\n\n"), limits.heartbeatMs);
    const life = setTimeout(() => this.end("expired"), limits.lifeMs);
    this.#timers = [heartbeat, life];
    for (const timer of this.#timers) timer.unref();
    this.#body.once("close", () => this.#stop());
    this.#write("retry: 2000\n\n");
  }

  /** The bytes to send. */
  get body(): Readable {
    return this.#body;
  }

  /** The cursor of the caller is too old: it should read everything again. */
  reset(): void {
    this.#write("event: reset\ndata: {}\n\n");
  }

  onChanges({ changes, more, position }: Changes): void {
    const isFirst = this.#position === undefined;
    this.#position = position;
    const events = changes.filter((change) => this.#wants(change));
    const left = this.watched.length > 0 ? 0 : more;
    if (events.length > 0 || left > 0 || isFirst) this.#send(events, left);
  }

  onMarks(marks: readonly { readonly change: RunChange; readonly mark: string }[]): void {
    const events: RunChange[] = [];
    for (const { change, mark } of marks) {
      if (!this.#wants(change) || this.#marks.get(change.runId) === mark) continue;
      this.#marks.set(change.runId, mark);
      events.push(change);
    }
    if (events.length > 0) this.#send(events, 0);
  }

  /** Says why, and closes the stream. */
  end(reason: EndReason): void {
    if (this.#body.writableEnded || this.#body.destroyed) return;
    this.#stop();
    // A reader that reads nothing more would keep its share of the streams for ever.
    setTimeout(() => this.#body.destroy(), farewellMs).unref();
    this.#body.end(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`);
  }

  #wants(change: RunChange): boolean {
    const { name, queue, status, runIds, allows } = this.#filter;
    return (
      (runIds.length === 0 || runIds.includes(change.runId)) &&
      (name === undefined || name === change.name) &&
      (queue === undefined || queue === change.queue) &&
      (status === undefined || status === change.status) &&
      allows(change)
    );
  }

  /** The newest of these events; the others count as left out. */
  #send(events: readonly RunChange[], left: number): void {
    const sent = events.slice(-maxChanges);
    const all = left + events.length - sent.length;
    const more = this.#filter.isPart ? Math.min(all, 1) : all;
    const id = this.#position === undefined ? "" : `id: ${writeEventId(this.#position)}\n`;
    this.#write(`event: changes\n${id}data: ${JSON.stringify({ events: sent, more })}\n\n`);
  }

  #write(text: string): void {
    if (this.#body.writableEnded || this.#body.destroyed) return;
    if (this.#body.readableLength + this.#body.writableLength > this.#limits.maxUnreadBytes) {
      this.end("slow");
      return;
    }
    this.#body.write(text);
  }

  #stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** The id of a message: where the stream stood. */
function writeEventId({ id, us }: ChangePosition): string {
  return `${id}.${us}`;
}

/** null: not such an id. */
export function readEventId(text: string): ChangePosition | null {
  const [, id, us] = /^(\d{1,18})\.(\d{1,18})$/.exec(text) ?? [];
  return id === undefined || us === undefined ? null : { id, us };
}
