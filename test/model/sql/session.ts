/**
 * What the senders of a sequence know: the claims that they were given, what each of them was shown, and the outcomes that they
 * have sent. Makes commands of intents, out of the model alone, so the same intents always make the same commands.
 */

import type { Answer, Command, Model } from "../run-model.js";
import { isDue, isServed, isWaiting } from "../runs/claim.js";
import type { ClaimedRun, Outcome } from "../runs/model.js";
import type { Intent, SignalIntent } from "./intents.js";

export type CommitCommand = Command & { op: "commit" };

/** A claim as its worker knows it. */
interface KnownClaim {
  readonly run: number;
  readonly claimId: string;
  readonly worker: string;
  readonly shown: readonly number[];
  readonly inboxSeq: number;
}

export interface Session {
  readonly claims: readonly KnownClaim[];
  readonly sent: readonly CommitCommand[];
  /** Makes the ids of claims. */
  readonly lastClaim: number;
}

export const newSession: Session = { claims: [], sent: [], lastClaim: 0 };

const unknownRun = 999;
const unknownPick = 12;

/** The commands of an intent, sent in one call. */
export const commandsOf = (session: Session, model: Model, intent: Intent): readonly Command[] => {
  const nextClaimId = String(session.lastClaim + 1);
  const current = session.claims.filter((claim) => isCurrent(model, claim));
  switch (intent.what) {
    case "start": {
      const { partitionKey: _key, delayMs: _delay, name: _name, ...free } = intent.run;
      return intent.isDirect
        ? [{ op: "start", run: free, claim: { worker: intent.worker, claimId: nextClaimId } }]
        : [{ op: "start", run: intent.run }];
    }
    case "claim":
      return [
        {
          op: "claim",
          worker: intent.worker,
          claimId: nextClaimId,
          queue: intent.queue,
          limit: intent.limit,
        },
      ];
    case "commit": {
      const claim = pickOf(current, intent.pick);
      if (claim === undefined) return [towardsClaim(model, nextClaimId)];
      const next = { worker: claim.worker, claimId: nextClaimId };
      const commit = commitOf(model, claim, intent.outcome);
      return [intent.handOver ? { ...commit, next } : commit];
    }
    case "commit together":
      return intent.outcomes
        .slice(0, current.length)
        .map((outcome, index) => commitOf(model, current[(intent.pick + index) % current.length]!, outcome));
    case "send again": {
      const sent = pickOf(session.sent, intent.pick);
      return sent === undefined ? [] : [sent];
    }
    case "commit late": {
      const claim = pickOf(session.claims, intent.pick);
      return claim === undefined ? [] : [{ ...commitOf(model, claim, intent.outcome), turn: intent.turn }];
    }
    case "signal":
      return intent.signals
        .filter(({ pick }) => model.runs.size > 0 || pick === unknownPick)
        .map((signal): Command & { op: "signal" } => ({ op: "signal", ...signalOf(model, signal) }))
        .filter((signal, index, all) => index === all.findIndex((other) => isSameKey(signal, other)));
    case "cancel":
      return [{ op: "cancel", run: runOf(model, intent.pick), cascade: intent.cascade }];
    case "release": {
      const claim = pickOf(session.claims, intent.pick);
      return claim === undefined ? [] : [{ op: "release", run: claim.run, claimId: claim.claimId }];
    }
    case "register":
      return model.workers.has(intent.worker) ? [] : [{ op: "register", worker: intent.worker }];
    case "lapse":
      return lapse(model, intent.worker);
    case "beat":
      return [{ op: "beat", worker: intent.worker }];
    case "advance":
      return [{ op: "advance", ms: intent.ms }];
    case "reap":
    case "sweep":
    case "repair":
      return [{ op: intent.what }];
  }
};

/** Nothing is claimed, so there is nothing to commit: what makes that more likely. */
const towardsClaim = (model: Model, claimId: string): Command => {
  const waiting = [...model.runs.values()]
    .filter(({ eligibleAt }) => eligibleAt < Infinity)
    .filter((run) => isWaiting(run) && isServed(run));
  const due = waiting.find((run) => isDue(model, run));
  const worker = [...model.workers].find(([, lease]) => lease === "live")?.[0];
  if (waiting.length === 0) return { op: "start", run: {} };
  if (due === undefined) {
    return { op: "advance", ms: Math.min(...waiting.map(({ eligibleAt }) => eligibleAt)) - model.now };
  }
  if (worker === undefined) return model.workers.size > 0 ? { op: "reap" } : { op: "register", worker: "a" };
  return { op: "claim", worker, claimId, queue: due.queue, limit: 4 };
};

/** What the senders know after a command was answered. */
export const learn = (session: Session, command: Command, answer: Answer): Session => {
  if (command.op === "start" && command.claim !== undefined && answer.op === "start") {
    const claim: KnownClaim = { ...command.claim, run: answer.id, shown: [], inboxSeq: 0 };
    return given(session, [claim]);
  }
  if (command.op === "claim" && answer.op === "claim") {
    return given(
      session,
      answer.runs.map((run) => claimOf(run, command)),
    );
  }
  if (command.op === "commit" && answer.op === "commit") {
    const sent: Session = { ...session, sent: [...session.sent, command] };
    const after = command.next === undefined ? sent : given(sent, handed(answer, command.next));
    return answer.verdict === "committed" && command.outcome.kind === "keep"
      ? { ...after, claims: after.claims.map((claim) => readOn(claim, command, answer.inboxSeq)) }
      : after;
  }
  return session;
};

const given = (session: Session, claims: readonly KnownClaim[]): Session => ({
  ...session,
  claims: [...session.claims, ...claims],
  lastClaim: session.lastClaim + 1,
});

const claimOf = (
  { id, awaited, inboxSeq }: ClaimedRun,
  { worker, claimId }: { readonly worker: string; readonly claimId: string },
): KnownClaim => ({ run: id, claimId, worker, shown: awaited.map(({ seq }) => seq), inboxSeq });

const handed = (
  answer: Answer & { op: "commit" },
  next: { readonly worker: string; readonly claimId: string },
): KnownClaim[] => (answer.handed === undefined ? [] : [claimOf(answer.handed, next)]);

/** The claim is kept: its next step was entered by no await, and its worker reads what has arrived. */
const readOn = (claim: KnownClaim, command: CommitCommand, inboxSeq?: number): KnownClaim =>
  claim.run === command.run && claim.claimId === command.claimId
    ? { ...claim, shown: [], inboxSeq: inboxSeq ?? claim.inboxSeq }
    : claim;

const isCurrent = (model: Model, { run: id, claimId }: KnownClaim): boolean => {
  const run = model.runs.get(id);
  return run?.status === "executing" && run.claimId === claimId;
};

const commitOf = (
  model: Model,
  { run, claimId, shown, inboxSeq }: KnownClaim,
  outcome: (Intent & { what: "commit" })["outcome"],
): CommitCommand => ({
  op: "commit",
  run,
  claimId,
  turn: model.runs.get(run)?.turn ?? 0,
  inboxSeq,
  outcome: { ...outcome, shown } as Outcome,
});

/** The end of a worker in steps: its lease passes, it is reaped, another takes its name. */
const lapse = (model: Model, worker: string): readonly Command[] => {
  switch (model.workers.get(worker)) {
    case "live":
      return [{ op: "lapse", worker }];
    case "lapsed":
      return [{ op: "reap" }];
    case undefined:
      return [{ op: "register", worker }];
  }
};

const pickOf = <T>(all: readonly T[], pick: number): T | undefined => all[pick % all.length];

const runOf = (model: Model, pick: number): number => pickOf([...model.runs.keys()], pick) ?? unknownRun;

const signalOf = (model: Model, { pick, ...signal }: SignalIntent) => ({
  ...signal,
  run: pick === unknownPick ? unknownRun : runOf(model, pick),
});

/** A dedup key twice in one call leaves a gap in the seqs, which means nothing: left to the tests of signals. */
const isSameKey = (one: Command & { op: "signal" }, other: Command & { op: "signal" }): boolean =>
  one === other || (one.run === other.run && one.dedupKey !== undefined && one.dedupKey === other.dedupKey);
