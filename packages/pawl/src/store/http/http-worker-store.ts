/**
 * The calls of a worker through a server: the worker protocol (`/v1/workers/*`), one request for
 * each call of `worker-store.ts`. The worker makes the claim id, which proves its claim; the server
 * only carries the calls to the database. This file retries nothing: the loops of the worker do
 * that, and the guards in the database make it harmless.
 */

import { InvalidOption, NotSupported, PayloadTooLarge } from "../../values/errors.js";
import { toBase64 } from "../../values/bytes.js";
import { Refused } from "../errors.js";
import type { JournalEntry, ListedStep, RecordVerdict } from "../journal.js";
import type {
  Claimable,
  Claimed,
  ClaimedRun,
  ClaimRequest,
  Commit,
  NewRun,
  OverdueRun,
  Recovered,
  Registration,
  StoredChild,
  StoredLimit,
  StoredSignal,
  StoreTransaction,
  Transition,
  Verdict,
  WorkerStore,
} from "../store.js";
import type { Caller, CallOptions } from "./caller.js";
import { type DatesAsText, readListedStep, readSignal } from "./dates.js";

/**
 * How long a claim may wait at the server. With the way, less than the heartbeat expects (`callMs`)
 * and the server allows.
 */
export const longestWaitMs = 25_000;
/** How much longer than the server's own wait an answer may take. */
const graceMs = 15_000;
/**
 * How long to wait for the answer of a claim that the worker has ended: it may bring runs that must
 * be released.
 */
const endMs = 1_000;

interface HeldClaim {
  readonly runId: string;
  readonly claimId: string;
}

export class HttpWorkerStore implements WorkerStore {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async begin(): Promise<StoreTransaction> {
    throw new NotSupported(
      "transaction runs SQL on the database itself, which a worker behind a server cannot reach; " +
        'serve this definition straight from Postgres: serve(definitions, { url: "postgres://…" })',
    );
  }

  async register(registration: Registration): Promise<void> {
    const { workerId, leaseMs, queues, info } = registration;
    const definitions = registration.definitions.map(
      ({ name, version, kind, queue, priority, retentionMs, timeoutMs = null, declared }) => {
        const graph = declared ? { declared: JSON.parse(declared) as unknown } : {};
        return { name, version, kind, queue, priority, retentionMs, timeoutMs, ...graph };
      },
    );
    await this.#post("register", {
      workerId,
      leaseMs,
      queues,
      info: JSON.parse(info) as unknown,
      definitions,
    });
  }

  async unregister(workerId: string): Promise<number> {
    const { held = 0 } = await this.#post<{ held?: number }>("unregister", { workerId });
    return held;
  }

  async claim({ workerId, claimId, queue, limit, names, versions, wait }: ClaimRequest): Promise<Claimed> {
    const definitions = names.map((name, index) => ({ name, version: versions[index]! }));
    const waitSeconds = wait === undefined ? 0 : wait.longestMs / 1_000;
    const asked = { workerId, claimId, queue, limit, definitions, waitSeconds };
    const controller = new AbortController();
    // Closing the connection would lose an answer on its way, and the runs in it.
    const end = (): void => {
      const timer = setTimeout(() => controller.abort(wait?.signal.reason), endMs);
      this.#post("claim/end", { workerId, claimId }).catch(() => {
        clearTimeout(timer);
        controller.abort(wait?.signal.reason);
      });
    };
    wait?.signal.addEventListener("abort", end, { once: true });
    try {
      const answer = await this.#post<{ runs: SentClaim[]; more: boolean }>("claim", asked, {
        timeoutMs: waitSeconds * 1_000 + graceMs,
        signal: controller.signal,
      });
      // The server remembers where the search stopped, and when to search next.
      const { more } = answer;
      return { runs: answer.runs.map(toClaimed), more, floor: null, busy: null, dueMs: null, throttled: 0 };
    } finally {
      wait?.signal.removeEventListener("abort", end);
    }
  }

  async commit(
    commits: readonly Commit[],
    { patient }: { patient: boolean },
  ): Promise<{ verdicts: Verdict[]; claimable: Claimable[] }> {
    try {
      const { verdicts } = await this.#post<{ verdicts: SentVerdict[] }>("commit", {
        commits: commits.map(toCommit),
        patient,
      });
      // The server itself notifies the workers that wait there.
      return { verdicts: verdicts.map(toVerdict), claimable: [] };
    } catch (error) {
      return { verdicts: [refusal(commits, error)], claimable: [] };
    }
  }

  async record(
    entries: readonly JournalEntry[],
    { patient }: { patient: boolean },
  ): Promise<RecordVerdict[]> {
    try {
      const body = { entries: entries.map(toEntry), patient };
      return (await this.#post<{ verdicts: RecordVerdict[] }>("record", body)).verdicts;
    } catch (error) {
      return [refusal(entries, error)];
    }
  }

  async journal(runId: string, after: string): Promise<ListedStep[]> {
    const { steps } = await this.#post<{ steps: DatesAsText<ListedStep>[] }>("journal", { runId, after });
    return steps.map(readListedStep);
  }

  async inboxSeqs(runIds: readonly string[]): Promise<Map<string, number>> {
    const { seqs } = await this.#post<{ seqs: Record<string, number> }>("inbox-seqs", { runIds });
    return new Map(Object.entries(seqs));
  }

  async inbox(runId: string, { after, upTo }: { after: number; upTo: number }): Promise<StoredSignal[]> {
    const { signals } = await this.#post<{ signals: DatesAsText<StoredSignal>[] }>("inbox", {
      runId,
      after,
      upTo,
    });
    return signals.map(readSignal);
  }

  async children(runId: string, after: number): Promise<StoredChild[]> {
    return (await this.#post<{ children: StoredChild[] }>("children", { runId, after })).children;
  }

  async release(claims: readonly HeldClaim[]): Promise<string[]> {
    return (await this.#post<{ released: string[] }>("release", { claims: claims.map(toClaim) })).released;
  }

  async held(claims: readonly HeldClaim[]): Promise<string[]> {
    return (await this.#post<{ held: string[] }>("held", { claims: claims.map(toClaim) })).held;
  }

  async paused(claims: readonly HeldClaim[]): Promise<string[]> {
    try {
      return (await this.#post<{ paused: string[] }>("paused", { claims: claims.map(toClaim) })).paused;
    } catch (error) {
      // A server of an older release has no pauses.
      if (error instanceof Refused) return [];
      throw error;
    }
  }

  async heldClaims(workerId: string): Promise<Readonly<Record<string, string>>> {
    return (await this.#post<{ held: Record<string, string> }>("holdings", { workerId })).held;
  }

  /** The server also brings runs forward, so nothing is left to do here. */
  async setLimit(limit: StoredLimit): Promise<boolean> {
    await this.#post("limits", limit);
    return false;
  }

  async bringForward(): Promise<number> {
    return 0;
  }

  recover(): Promise<Recovered> {
    throw new NotSupported("the server ends the claims of dead workers");
  }

  async failOverdue(runIds: readonly string[]): ReturnType<WorkerStore["failOverdue"]> {
    const answer = await this.#post<{ failed: OverdueRun[]; dueMs: number | null }>("overdue", { runIds });
    return { ...answer, claimable: [] };
  }

  sweep(): Promise<{ swept: number; last: string | null }> {
    throw new NotSupported("the server deletes runs past their retention");
  }

  workBulk(): Promise<never> {
    throw new NotSupported("the server works off bulk operations");
  }

  #post<Answer>(what: string, body: object, options: CallOptions = {}): Promise<Answer> {
    return this.#caller.call("POST", `/v1/workers/${what}`, { tries: 1, ...options, body });
  }
}

type SentClaim = Omit<ClaimedRun, "inbox"> & {
  readonly inbox: readonly DatesAsText<StoredSignal>[] | null;
};
type SentVerdict =
  | Exclude<Verdict, { kind: "committed" | "stale" }>
  | { readonly kind: "stale"; readonly paused?: boolean }
  | (Omit<Extract<Verdict, { kind: "committed" }>, "handed"> & { readonly handed: SentClaim | null });

function toClaimed(sent: SentClaim): ClaimedRun {
  return { ...sent, inbox: sent.inbox?.map(readSignal) ?? null };
}

function toVerdict(sent: SentVerdict): Verdict {
  if (sent.kind === "stale" && sent.paused === true) {
    return { kind: "committed", uniqueLost: false, inboxSeq: null, handed: null, paused: true };
  }
  if (sent.kind !== "committed") return sent;
  return { ...sent, handed: sent.handed === null ? null : toClaimed(sent.handed) };
}

/** Callers pass objects with more members. */
function toClaim({ runId, claimId }: HeldClaim): HeldClaim {
  return { runId, claimId };
}

/**
 * The server refuses the values of one run: an error of its step. If there are several runs, each
 * is sent again alone.
 */
function refusal(items: readonly unknown[], error: unknown): Extract<Verdict, { kind: "failed" }> {
  const isRefusal = error instanceof InvalidOption || error instanceof PayloadTooLarge;
  if (items.length !== 1 || !isRefusal) throw error;
  return { kind: "failed", code: error.code, message: error.message };
}

function toCommit({ transition, ...rest }: Commit): object {
  return { ...rest, transition: toTransition(transition) };
}

function toTransition(transition: Transition): object {
  return transition.kind === "spawn"
    ? { ...transition, children: transition.children.map(toNewRun) }
    : transition;
}

function toEntry({ change, ...rest }: JournalEntry): object {
  return { ...rest, change: change.op === "invoke" ? { ...change, child: toNewRun(change.child) } : change };
}

function toNewRun({ direct: _direct, uniqueKey, ...run }: NewRun): object {
  return { ...run, uniqueKeyBase64: uniqueKey === null ? null : toBase64(uniqueKey) };
}
