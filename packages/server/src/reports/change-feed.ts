/**
 * Reads the changes of runs once a second, for all streams of events of this server together, and only
 * while there is a stream. The database is the source of truth, so several servers tell the same. A
 * look reads at most 100 starts and 100 ends: an open dashboard costs the same however busy the
 * workers are. Looks overlap by some seconds, because transactions commit in any order; a change that
 * was told is not told again. Made by the routes of events.
 */

import type { Logger } from "pawl";
import type { ChangePosition, ChangeReader, Changes, RunChange } from "pawl/engine";

/** How often it looks. */
const everyMs = 1_000;
/** A look that took long is followed by a rest of so many times its duration. */
const rest = 20;
/** How far each look goes back. */
const overlapMs = 3_000;
export const maxChanges = 100;
/** How many runs one look reads the marks of. */
const maxWatched = 1_000;

/** A stream, as far as the feed knows it. */
export interface ChangeListener {
  /** The runs whose every change it wants. */
  readonly watched: readonly string[];
  onChanges(changes: Changes): void;
  onMarks(marks: Awaited<ReturnType<ChangeReader["marks"]>>): void;
}

export class ChangeFeed {
  readonly #reader: ChangeReader;
  readonly #logger: Logger;
  readonly #listeners = new Set<ChangeListener>();
  #timer: NodeJS.Timeout | undefined;
  /** Where the last looks stood, oldest first; none: it does not look. */
  #positions: { readonly atMs: number; readonly position: ChangePosition }[] = [];
  /** The changes that it has told, and when. */
  readonly #told = new Map<string, number>();

  constructor(reader: ChangeReader, logger: Logger) {
    this.#reader = reader;
    this.#logger = logger;
  }

  /**
   * Tells this listener every change since a position of now or of some seconds ago. Returns how to
   * stop.
   */
  add(listener: ChangeListener, from: ChangePosition): () => void {
    this.#listeners.add(listener);
    if (this.#positions.length === 0) this.#positions.push({ atMs: performance.now(), position: from });
    if (this.#timer === undefined) this.#lookAfter(0);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#positions = [];
      this.#told.clear();
    };
  }

  #lookAfter(waitMs: number): void {
    const timer = setTimeout(() => {
      void this.#look().then((tookMs) => {
        if (this.#timer === timer) this.#lookAfter(Math.max(everyMs, tookMs * rest));
      });
    }, waitMs);
    timer.unref();
    this.#timer = timer;
  }

  /** One look. Answers how long it took. */
  async #look(): Promise<number> {
    const beganMs = performance.now();
    try {
      const from = this.#positions[0]?.position;
      const after = this.#positions.at(-1)?.position;
      const since = from === undefined || after === undefined ? null : { from, after };
      const found = await this.#reader.changes(since, maxChanges);
      const watched = new Set([...this.#listeners].flatMap((listener) => listener.watched));
      const marks = await this.#reader.marks([...watched].slice(0, maxWatched));
      if (this.#listeners.size > 0) this.#tell(found, marks);
    } catch (error) {
      this.#logger.warn({ err: error }, "pawl: the changes of runs cannot be read, trying again");
    }
    return performance.now() - beganMs;
  }

  #tell(found: Changes, marks: Awaited<ReturnType<ChangeReader["marks"]>>): void {
    const nowMs = performance.now();
    this.#positions.push({ atMs: nowMs, position: found.position });
    while (this.#positions.length > 1 && this.#positions[1]!.atMs < nowMs - overlapMs)
      this.#positions.shift();
    for (const [key, atMs] of this.#told) if (atMs < nowMs - 3 * overlapMs) this.#told.delete(key);
    const changes = found.changes.filter((change) => {
      const key = keyOf(change);
      const isNew = !this.#told.has(key);
      this.#told.set(key, nowMs);
      return isNew;
    });
    for (const listener of this.#listeners) {
      listener.onChanges({ ...found, changes });
      listener.onMarks(marks);
    }
  }
}

function keyOf({ runId, change }: RunChange): string {
  return `${runId}/${change}`;
}
