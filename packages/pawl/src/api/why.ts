/**
 * `pawl.why(runId)`: why a run makes no progress, as data and as a sentence. Pure: one call of the
 * store reads the facts, and this file finds the reason among them, in the order in which a run
 * would meet the obstacles. Used by the Postgres transport, and by the server, which hides runs that
 * a token may not see.
 */

import { readScheduleKey, type ScheduleTick } from "../define/schedule-key.js";
import type { Pause, Why, WhyReason } from "../store/views.js";
import type { WhyFacts } from "../store/why-facts.js";

export type { Why, WhyReason } from "../store/views.js";

/** Never names the runs of `hidden`. */
export function explainRun(runId: string, facts: WhyFacts, hidden: ReadonlySet<string> = new Set()): Why {
  const found = hide(findReason(runId, facts), hidden);
  const deadlineAt = found.reason === "ended" ? null : toDate(facts.deadlineAt);
  const schedule = readScheduleKey(facts.schedule);
  const text =
    `run ${runId} ${describe(runId, found, facts)}` +
    `${describeDeadline(deadlineAt, facts)}${describeSchedule(schedule)}`;
  return {
    runId,
    phase: facts.phase,
    ...found,
    ...(deadlineAt === null ? {} : { deadlineAt }),
    ...(schedule === null ? {} : { schedule }),
    text,
  };
}

/** The runs of others that the answer may name: those before it in line, and holders of slots. */
export function otherRuns({ holder, first, slots }: WhyFacts): string[] {
  return [holder?.runId, first, ...(slots?.holders ?? [])].filter((runId) => typeof runId === "string");
}

function hide(why: WhyReason, hidden: ReadonlySet<string>): WhyReason {
  if (why.reason === "key_taken" && why.holder !== null && hidden.has(why.holder)) {
    return { ...why, holder: null, worker: null };
  }
  if (why.reason === "limit_full") {
    return { ...why, holders: why.holders.filter((runId) => !hidden.has(runId)) };
  }
  return why;
}

function describeSchedule(schedule: ScheduleTick | null): string {
  return schedule === null ? "" : `; the schedule "${schedule.name}" started it for ${iso(schedule.at)}`;
}

/** How long a live run has until it fails by its deadline. */
function describeDeadline(deadlineAt: Date | null, { now }: WhyFacts): string {
  if (deadlineAt === null) return "";
  const seconds = Math.round((deadlineAt.getTime() - Date.parse(now)) / 1_000);
  if (seconds <= 0) return "; its deadline has passed, and it fails within a few seconds";
  const left = seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
  return `; its deadline is in ${left}, at ${iso(deadlineAt)}`;
}

function findReason(runId: string, facts: WhyFacts): WhyReason {
  const { phase, awaits, worker } = facts;
  if (facts.completedAt !== null && (phase === "done" || phase === "failed" || phase === "cancelled")) {
    const status = phase === "done" ? "completed" : phase;
    return {
      reason: "ended",
      status,
      at: new Date(facts.completedAt),
      error: facts.error,
      rerunAs: facts.rerunAs,
    };
  }
  if (phase === "executing" && worker !== null) {
    const leaseUntil = toDate(facts.leaseUntil);
    if (facts.workerAlive === true && leaseUntil !== null) return { reason: "executing", worker, leaseUntil };
    return { reason: "worker_dead", worker, leaseUntil };
  }
  if (facts.paused !== null) {
    const { scope, by, reason: given, since } = facts.paused;
    return { reason: "paused", scope, by, given, since: new Date(since) };
  }
  if (phase === "awaiting_children") {
    const { childrenPending: unfinished, unfinished: children } = facts;
    return { reason: "awaiting_children", unfinished, children, since: new Date(awaits?.since ?? facts.now) };
  }
  const dueAt = toDate(facts.eligibleAt);
  const isDue = dueAt !== null && dueAt <= new Date(facts.now);
  if (phase === "awaiting_signal" && !isDue && awaits?.steps !== undefined) {
    const { names = [], matches = {}, steps, since = facts.now } = awaits;
    return {
      reason: "suspended",
      steps,
      names: names.filter((name) => !isReply(name)),
      matches,
      children: names.filter(isReply).map((name) => name.slice(1)),
      since: new Date(since),
      until: dueAt,
      inbox: Object.fromEntries(Object.entries(facts.inbox).filter(([name]) => !isReply(name))),
    };
  }
  if (phase === "awaiting_signal" && !isDue) {
    return {
      reason: "awaiting_signal",
      names: awaits?.names ?? [],
      match: awaits?.match ?? null,
      since: new Date(awaits?.since ?? facts.now),
      until: dueAt,
      inbox: facts.inbox,
    };
  }
  return findObstacle(runId, facts, dueAt, isDue);
}

/** Why no worker has claimed a run that waits for nothing else. */
function findObstacle(runId: string, facts: WhyFacts, dueAt: Date | null, isDue: boolean): WhyReason {
  const { name, version, servedVersions, registered, queue, holder, first, partitionKey } = facts;
  if ((facts.hold & 4) !== 0) return { reason: "held", what: "run" };
  if (facts.databaseHeld) return { reason: "held", what: "database" };
  if ((facts.hold & 8) !== 0) return { reason: "set_aside", error: facts.error };
  if (!isDue && dueAt !== null) {
    const { rateLimit, attempt, crashes, error } = facts;
    if (facts.throttled && rateLimit !== null) return { reason: "throttled", rateLimit, until: dueAt };
    if (facts.debounceKey !== null) {
      const latest = toDate(facts.debounceUntil);
      return { reason: "debounced", key: facts.debounceKey, until: dueAt, latest };
    }
    return { reason: "not_due", until: dueAt, attempt, crashes, error };
  }
  if (!facts.served) return { reason: "unserved", name, version, servedVersions, registered };
  if (!facts.queueServed && queue !== null) return { reason: "queue_unserved", queue };
  if (partitionKey !== null && holder !== null) {
    return { reason: "key_taken", partitionKey, holder: holder.runId, worker: holder.worker };
  }
  if (partitionKey !== null && first !== null && first !== runId) {
    return { reason: "key_taken", partitionKey, holder: first, worker: null };
  }
  const { concurrency, slots } = facts;
  if (concurrency !== null && slots !== null && slots.concurrent !== null) {
    const { concurrent, held, holders, ahead } = slots;
    if ((facts.hold & 32) !== 0 || held >= concurrent) {
      return { reason: "limit_full", concurrency, concurrent, held, holders, ahead };
    }
  }
  return { reason: "claimable", queue: queue ?? "default", since: dueAt ?? new Date(facts.now) };
}

function describe(runId: string, why: WhyReason, facts: WhyFacts): string {
  const definition = `${facts.name}@${facts.version}`;
  const also =
    (facts.served ? "" : `; also, no live worker serves ${definition}`) +
    (facts.databaseHeld ? "; also, the database is held" : "");
  switch (why.reason) {
    case "ended": {
      const error = why.error === null ? "" : `: ${why.error.message}`;
      const again = why.rerunAs === null ? "" : `; it runs again as run ${why.rerunAs}`;
      return `has ended: ${why.status} at ${iso(why.at)}${error}${again}`;
    }
    case "executing":
      return (
        `is being executed${atStep(facts)} by worker ${why.worker}` +
        (facts.paused === null ? "" : `; ${facts.paused.by} has paused it: it stays after its present step`)
      );
    case "worker_dead":
      return (
        `was being executed by worker ${why.worker}, which sends no heartbeats; another worker takes over ` +
        (why.leaseUntil === null ? "within about a second" : `when its lease ends, at ${iso(why.leaseUntil)}`)
      );
    case "awaiting_signal": {
      const match = why.match === null ? "" : ` matching ${JSON.stringify(why.match)}`;
      const until = why.until === null ? "" : `, until ${iso(why.until)}`;
      const inbox = Object.entries(why.inbox).map(([name, count]) => `${count} × "${name}"`);
      const has = inbox.length === 0 ? "its inbox is empty" : `its inbox has ${inbox.join(", ")}`;
      return `waits for the signal ${quoted(why.names)}${match} (since ${iso(why.since)}${until}); ${has}${also}`;
    }
    case "suspended": {
      const signals = why.names.map((name) => {
        const match = why.matches[name];
        return `the signal "${name}"${match === undefined ? "" : ` matching ${JSON.stringify(match)}`}`;
      });
      const ends = why.children.map((childId) => `the end of run ${childId}`);
      const times = why.until === null ? [] : [iso(why.until)];
      const inbox = Object.entries(why.inbox).map(([name, count]) => `${count} × "${name}"`);
      const has =
        why.names.length === 0
          ? ""
          : `; its inbox ${inbox.length === 0 ? "is empty" : `has ${inbox.join(", ")}`}`;
      return (
        `is suspended in step ${quoted(why.steps, " and ")} (since ${iso(why.since)}) and waits for ` +
        `${[...signals, ...ends, ...times].join(" or ")}${has}${also}`
      );
    }
    case "awaiting_children":
      return `waits for ${why.unfinished} of its children: ${shorten(why.children, why.unfinished)} (since ${iso(why.since)})`;
    case "paused": {
      const what = pausedWhat(why.scope, facts);
      const given = why.given === null ? "" : `: ${why.given}`;
      return `is paused${what}, by ${why.by} since ${iso(why.since)}${given}; ${resumeWith(runId, why.scope, facts)}${also}`;
    }
    case "held":
      return why.what === "run"
        ? "is held by an operator"
        : "is held: no worker executes anything in this database until `pawl fork adopt` or `pawl hold --release`";
    case "set_aside": {
      const error = why.error === null ? "" : `: ${why.error.message} (${why.error.code})`;
      return `is set aside, because the database cannot claim it${error}`;
    }
    case "unserved": {
      const instead =
        why.servedVersions.length > 0
          ? `; live workers serve version ${why.servedVersions.join(", ")} only`
          : why.registered
            ? ""
            : "; none ever has";
      return `is due, but no live worker serves ${definition}${instead}`;
    }
    case "queue_unserved":
      return `is due, but no live worker serves ${definition} on queue "${why.queue}"`;
    case "throttled":
      return `is throttled by the rate limit "${why.rateLimit}" until ${iso(why.until)}${also}`;
    case "debounced": {
      const latest = why.latest === null ? "" : `, but not beyond ${iso(why.latest)}`;
      return `is debounced until ${iso(why.until)}: another start with the key "${why.key}" moves that${latest}${also}`;
    }
    case "not_due": {
      const again = why.attempt > 0 || why.crashes > 0 ? `, attempt ${why.attempt + 1}` : "";
      const error = why.error === null ? "" : `, after the error: ${why.error.message}`;
      return `is due at ${iso(why.until)}${again}${error}${also}`;
    }
    case "key_taken":
      if (why.holder === null) {
        return `waits for its partition key "${why.partitionKey}": a run that this token may not see has it, or is before it in line`;
      }
      return why.worker === null
        ? `waits for its partition key "${why.partitionKey}": run ${why.holder} is before it in line`
        : `waits for its partition key "${why.partitionKey}", which run ${why.holder} holds on worker ${why.worker}`;
    case "limit_full": {
      const { ahead } = why;
      const line =
        ahead === 0
          ? "it is first in line"
          : `${ahead} ${ahead === 1 ? "run is" : "runs are"} before it in line`;
      const slots = `${why.held} of ${why.concurrent} slots are held`;
      const by = why.holders.length === 0 ? "" : ` by run ${shorten(why.holders, why.held)}`;
      return `waits for a slot of the concurrency limit "${why.concurrency}": ${slots}${by}; ${line}`;
    }
    case "claimable":
      return `has been due since ${iso(why.since)}; a worker claims it when it has a free slot for queue "${why.queue}"`;
  }
}

function pausedWhat(scope: Pause["scope"], { name, queue }: WhyFacts): string {
  if (scope === "run") return "";
  return scope === "queue" ? `, as its queue "${queue}" is` : `, as its definition ${name} is`;
}

function resumeWith(runId: string, scope: Pause["scope"], { name, queue }: WhyFacts): string {
  const what = {
    run: `runs resume ${runId}`,
    queue: `queues resume ${queue}`,
    definition: `definitions resume ${name}`,
  };
  return `it goes on after \`pawl ${what[scope]}\``;
}

const toDate = (text: string | null): Date | null => (text === null ? null : new Date(text));
const iso = (date: Date): string => date.toISOString();
const atStep = ({ step }: WhyFacts): string => (step === null ? "" : ` at step "${step}"`);
const quoted = (names: readonly string[], between = " or "): string =>
  names.map((name) => `"${name}"`).join(between);
/** The result of a child arrives as a signal with a name that users cannot send. */
const isReply = (name: string): boolean => name.startsWith("~");

function shorten(children: readonly string[], all: number): string {
  return children.join(", ") + (all > children.length ? ", …" : "");
}
