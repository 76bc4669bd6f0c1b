/**
 * The store of a test's worker. `cutOff` acts as if the process of the worker had been killed:
 * calls in flight get no answer, and no call is sent. A `WriteWatch` sees every write and can make
 * the worker die before or after it. All calls go to the one store of the test. Made by
 * `test-workers.ts`.
 */

import type { JournalEntry } from "../store/journal.js";
import type { Claimable, Commit, StoreTransaction, WorkerStore } from "../store/store.js";
import type { Activity } from "./activity.js";

/** A write of a worker: the outcome of a run, or an entry of its journal. */
export type Write =
  | { readonly kind: "outcome"; readonly runId: string; readonly commit: Commit }
  | { readonly kind: "entry"; readonly runId: string; readonly entry: JournalEntry };

export interface WriteWatch {
  /** Whether the worker dies at this write. */
  diesAt(write: Write, side: "before" | "after"): boolean;
}

export interface CrashableStoreOptions {
  readonly store: WorkerStore;
  readonly activity: Activity;
  /** The current watch of writes; null if there is none. */
  watch(): WriteWatch | null;
  /** Called when a watch makes the worker die. It is cut off already. */
  onDeath(): void;
}

const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** A poll that finds nothing is not progress. */
function isProgress(name: string, answer: unknown): boolean {
  if (name === "claim") return (answer as { runs: readonly unknown[] }).runs.length > 0;
  return name !== "inboxSeqs";
}

export class CrashableStore {
  /** The store for the worker. */
  readonly store: WorkerStore;
  /** The ids under which the worker has registered. */
  readonly workerIds: string[] = [];
  readonly #options: CrashableStoreOptions;
  readonly #inFlight = new Set<Promise<unknown>>();
  readonly #open = new Set<StoreTransaction>();
  #isCutOff = false;

  constructor(options: CrashableStoreOptions) {
    this.#options = options;
    const own: Partial<WorkerStore> = {
      begin: () => this.#begin(),
      commit: (commits, how) => this.#commit(commits, how),
      record: (entries, how) => this.#record(entries, how),
      register: (registration) => {
        this.workerIds.push(registration.workerId);
        return this.#pass("register", () => options.store.register(registration));
      },
    };
    this.store = new Proxy(options.store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(own, name) ?? Reflect.get(target, name, target);
        if (typeof value !== "function" || typeof name !== "string" || name in own) return value;
        return (...given: unknown[]) =>
          this.#pass(name, () => Reflect.apply(value, target, given) as Promise<unknown>);
      },
    });
  }

  /**
   * From now on no call is sent or answered. Resolves when the database has finished earlier calls.
   */
  async cutOff(): Promise<void> {
    this.#isCutOff = true;
    const open = [...this.#open];
    this.#open.clear();
    await Promise.all(open.map((transaction) => transaction.rollback()));
    await Promise.allSettled(this.#inFlight);
  }

  async #pass<T>(name: string, call: () => Promise<T>): Promise<T> {
    if (this.#isCutOff) return never();
    const { activity } = this.#options;
    activity.begin();
    let isDone = true;
    const answered = call();
    this.#inFlight.add(answered);
    try {
      isDone = isProgress(name, await answered);
    } catch {
      // The caller gets the error below, unless it is cut off.
    } finally {
      this.#inFlight.delete(answered);
      activity.end(isDone);
    }
    return this.#isCutOff ? never() : answered;
  }

  /** Whether the worker dies at this write. */
  #diesAt(write: Write, side: "before" | "after"): boolean {
    if (this.#isCutOff) return true;
    if (this.#options.watch()?.diesAt(write, side) !== true) return false;
    void this.cutOff();
    this.#options.onDeath();
    return true;
  }

  async #commit(commits: readonly Commit[], how: { patient: boolean }): ReturnType<WorkerStore["commit"]> {
    const { store, activity } = this.#options;
    for (const { runId } of commits) activity.step(runId);
    if (this.#options.watch() === null) return this.#pass("commit", () => store.commit(commits, how));
    const answers = await this.#oneByOne(
      commits.map((commit) => ({ kind: "outcome", runId: commit.runId, commit }) as const),
      ({ commit }) => this.#pass("commit", () => store.commit([commit], how)),
      ({ verdicts }) => verdicts[0]!.kind === "committed",
    );
    return {
      verdicts: answers.flatMap(({ verdicts }) => verdicts),
      claimable: answers.flatMap(({ claimable }): Claimable[] => claimable),
    };
  }

  async #record(
    entries: readonly JournalEntry[],
    how: { patient: boolean },
  ): ReturnType<WorkerStore["record"]> {
    const { store, activity } = this.#options;
    for (const { runId } of entries) activity.step(runId);
    if (this.#options.watch() === null) return this.#pass("record", () => store.record(entries, how));
    const answers = await this.#oneByOne(
      entries.map((entry) => ({ kind: "entry", runId: entry.runId, entry }) as const),
      ({ entry }) => this.#pass("record", () => store.record([entry], how)),
      ([verdict]) => verdict!.kind !== "stale" && verdict!.kind !== "busy",
    );
    return answers.flat();
  }

  /** Sends each write alone, so that the worker can die between any two. */
  async #oneByOne<W extends Write, Answer>(
    writes: readonly W[],
    send: (write: W) => Promise<Answer>,
    isWritten: (answer: Answer) => boolean,
  ): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (const write of writes) {
      if (this.#diesAt(write, "before")) return never();
      const answer = await send(write);
      if (isWritten(answer) && this.#diesAt(write, "after")) return never();
      answers.push(answer);
    }
    return answers;
  }

  /** Begins a transaction for user code. Its writes are committed at its end. */
  async #begin(): Promise<StoreTransaction> {
    const opened = await this.#pass("begin", async () => {
      const begun = await this.#options.store.begin();
      // If the worker died meanwhile, nobody else would end the transaction.
      if (this.#isCutOff) await begun.rollback();
      else this.#open.add(begun);
      return begun;
    });
    const writes: Write[] = [];
    const close = (): boolean => this.#open.delete(opened);
    return {
      tx: opened.tx,
      hasSettings: () => opened.hasSettings(),
      isLost: () => opened.isLost(),
      record: (entry) => {
        writes.push({ kind: "entry", runId: entry.runId, entry });
        this.#options.activity.step(entry.runId);
        return this.#pass("record", () => opened.record(entry));
      },
      apply: (commit) => {
        writes.push({ kind: "outcome", runId: commit.runId, commit });
        this.#options.activity.step(commit.runId);
        return this.#pass("apply", () => opened.apply(commit));
      },
      commit: async () => {
        const write = writes.at(-1);
        if (write !== undefined && this.#diesAt(write, "before")) return never();
        close();
        await this.#pass("commit", () => opened.commit());
        if (write !== undefined && this.#diesAt(write, "after")) return never();
      },
      rollback: async () => {
        if (close()) await opened.rollback();
      },
    };
  }
}
