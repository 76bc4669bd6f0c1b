/**
 * What a worker asks of a server: the worker protocol (`/v1/workers/*`), call by call what `store.ts` says. The claim id is made by the
 * worker, as ever, and is its proof; the server only carries the calls to the database. Nothing is sent twice here: the loops of the
 * engine do that, and the guards in the database make it harmless.
 */

import { InvalidOption, NotSupported, PayloadTooLarge } from "../../values/errors.js";
import { toBase64 } from "../../values/bytes.js";
import type { JournalEntry, ListedStep, RecordVerdict } from "../journal.js";
import type {
  Claimable,
  Claimed,
  ClaimedRun,
  ClaimRequest,
  Commit,
  NewRun,
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

/** How long a claim may be held back: with the way, less than a beat reckons with (`callMs`), and than a server allows. */
export const longestWaitMs = 25_000;
/** Beside what a server may wait itself, the way there and back. */
const wayMs = 15_000;
/** How long to wait for the answer to a claim that is not wanted any more: it may bring runs, which then can be let go. */
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
      "transaction runs its SQL on the database itself, which a worker behind a server does not reach; " +
        'serve this definition straight from Postgres: serve(definitions, { url: "postgres://…" })',
    );
  }

  async register(registration: Registration): Promise<void> {
    const { workerId, leaseMs, queues, info } = registration;
    const definitions = registration.definitions.map(
      ({ name, version, kind, queue, priority, retentionMs }) => {
        return { name, version, kind, queue, priority, retentionMs };
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
    // Not simply hung up on: an answer that is on its way would be lost, and what it brings with it.
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
        timeoutMs: waitSeconds * 1_000 + wayMs,
        signal: controller.signal,
      });
      // The server remembers where to look next, and when.
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
      // What has become claimable, the server tells those who wait there.
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

  async holdings(workerId: string): Promise<Readonly<Record<string, string>>> {
    return (await this.#post<{ held: Record<string, string> }>("holdings", { workerId })).held;
  }

  /** The server does all that follows from it: nothing is left to be brought forward. */
  async setLimit({ name, allowed, periodMs, burst }: StoredLimit): Promise<boolean> {
    await this.#post("limits", { name, allowed, periodMs, burst });
    return false;
  }

  async bringForward(): Promise<number> {
    return 0;
  }

  recover(): Promise<Recovered> {
    throw new NotSupported("the server ends the claims of dead workers");
  }

  sweep(): Promise<{ swept: number; last: string | null }> {
    throw new NotSupported("the server deletes runs past their retention");
  }

  #post<Answer>(what: string, body: object, options: CallOptions = {}): Promise<Answer> {
    return this.#caller.call("POST", `/v1/workers/${what}`, { tries: 1, ...options, body });
  }
}

type SentClaim = Omit<ClaimedRun, "inbox"> & {
  readonly inbox: readonly DatesAsText<StoredSignal>[] | null;
};
type SentVerdict =
  | Exclude<Verdict, { kind: "committed" }>
  | (Omit<Extract<Verdict, { kind: "committed" }>, "handed"> & { readonly handed: SentClaim | null });

function toClaimed(sent: SentClaim): ClaimedRun {
  return { ...sent, inbox: sent.inbox?.map(readSignal) ?? null };
}

function toVerdict(sent: SentVerdict): Verdict {
  if (sent.kind !== "committed") return sent;
  return { ...sent, handed: sent.handed === null ? null : toClaimed(sent.handed) };
}

/** Executions have more members than these two. */
function toClaim({ runId, claimId }: HeldClaim): HeldClaim {
  return { runId, claimId };
}

/** The server refuses what it was sent for one run: an error of its step. Of several, nobody knows which: each is sent by itself. */
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
