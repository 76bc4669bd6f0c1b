/**
 * The engine on one database, for a process that serves runs to callers elsewhere. It opens the
 * connections, shares the hub of this process, and ends everything in `close`. Called by the
 * server.
 */

import { locateSchema } from "../api/locate.js";
import { toCountQuery, toFilter, toPageQuery, toRun, writeCursor } from "../api/runs.js";
import { type Started, toStarted } from "../api/send.js";
import { type StepPage, stepsPage } from "../api/steps.js";
import { explainRun, otherRuns, type Why } from "../api/why.js";
import { subscribe, type Subscribed, type SubscriptionTarget } from "../api/topics.js";
import type { AnyDefinition } from "../define/definition.js";
import { type Hub, hubOf } from "../local/hub.js";
import { setLimit } from "../local/limits.js";
import { Results } from "../local/results.js";
import { Starter } from "../local/start.js";
import { Events } from "../observe/events.js";
import { expositionType } from "../observe/exposition.js";
import { Gauges } from "../observe/gauges.js";
import { Metrics } from "../observe/metrics.js";
import { type Reports, reportsOver } from "../operate/reports.js";
import { effectsOf, sendHints } from "../run/effects.js";
import { newRun } from "../run/new-run.js";
import { ScheduleFirer } from "../schedules/firer.js";
import { currentActor } from "../operate/actor.js";
import { LocalSchedules } from "../schedules/local-schedules.js";
import type { ScheduleTransport } from "../store/client-transport.js";
import { addressKey } from "../store/postgres/database.js";
import { isBusy, isOutage } from "../store/postgres/database-errors.js";
import { PostgresStore } from "../store/postgres/postgres-store.js";
import type { Commit, EndedRun, NewRun, StoredLimit, Verdict } from "../store/store.js";
import type { Prefixes } from "../store/reports/reports.js";
import type { Page } from "../store/views.js";
import { LockLanes } from "../timing/slow-lanes.js";
import type { Logger } from "../values/logger.js";
import { copyWarning, heldWarning } from "../worker/database-watch.js";
import { Sweeper } from "../worker/sweeper.js";

export interface EngineOptions {
  /** The URL of the database; undefined: found as by `connect`. */
  readonly url: string | undefined;
  readonly schema: string;
  /** How many connections `store` may open. */
  readonly connections: number;
  readonly maxPayloadBytes: number;
  readonly logger: Logger;
}

/** How a start was asked for. */
export interface StartContext {
  /** How errors call the start ("start") and its input ("input"). */
  readonly of?: string;
  readonly what?: string;
  /** The kind of a definition that only the caller knows. */
  readonly kind?: AnyDefinition["kind"] | undefined;
}

export interface Engine {
  /** The URL of the database that was found. */
  readonly url: string;
  /** Every call to the database. `store.ownedBy(token)` guards the calls of remote workers. */
  readonly store: PostgresStore;
  /** The same on connections of its own: no other call delays a heartbeat. */
  readonly heartbeats: PostgresStore;
  /** Tells the workers and clients of this process about work, ends of runs and messages. */
  readonly hub: Hub;
  /** The events of this process: starts, signals, cancellations, sweeps. */
  readonly events: Events;
  /** The metrics of this process, and gauges that are read from the database. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** Checks the arguments of a start by name. */
  newRun(name: string, input: unknown, options: object, context?: StartContext): Promise<NewRun>;
  /** Starts a run, in one statement with the other starts of this moment. */
  start(run: NewRun): Promise<Started>;
  /** Starts all of them in one statement, or none. */
  startMany(runs: readonly NewRun[]): Promise<Started[]>;
  /** Waits for the end of a run; null: the time has passed, or `signal` was aborted. */
  waitForEnd(runId: string, timeoutMs: number, signal: AbortSignal): Promise<EndedRun | null>;
  /** `runs.list` and `runs.count` for a token that may see only some runs (null: all). */
  listRuns(options: object, prefixes: Prefixes | null): Promise<Page>;
  countRuns(options: object, prefixes: Prefixes | null): Promise<number>;
  /** A page of the journal of a workflow run. */
  steps(runId: string, cursor: string | undefined): Promise<StepPage>;
  /**
   * Why a run makes no progress, for a caller that may see some runs only; null: there is no such
   * run.
   */
  why(runId: string, allows: (run: { name: string; queue: string }) => boolean): Promise<Why | null>;
  /** Makes a subscription that belongs to this token (null: to nobody). */
  subscribe(pattern: string, target: SubscriptionTarget, owner: string | null): Promise<Subscribed>;
  /** Sets a rate limit and wakes the runs that it lets through. */
  setLimit(limit: StoredLimit): Promise<void>;
  /** The reports for a token with these prefixes (null: of all names and queues). */
  reports(prefixes: Prefixes | null): Reports;
  /** Schedules, straight in this database. Changes are lines of the action log. */
  readonly schedules: ScheduleTransport;
  /** Schedules that workers declare with their code: not in the action log. */
  readonly declaredSchedules: Pick<ScheduleTransport, "set">;
  /** Sends the hints that follow from commits of remote workers. */
  sendHints(commits: readonly Commit[], verdicts: readonly Verdict[]): void;
  /** Begins to reclaim runs of dead workers and to delete runs past their retention. */
  startSweeper(intervals: SweepIntervals): Pick<Sweeper, "hurry" | "stop">;
  /** Begins to fire schedules that are due. */
  startFirer(): Pick<ScheduleFirer, "stop">;
  /** Resolves if the database answers within 3 s, on a connection that no other call uses. */
  ping(): Promise<void>;
  /** Callers that wait for the end of a run get this error. */
  close(reason: Error): Promise<void>;
}

interface SweepIntervals {
  readonly reapMs: number;
  /** null: another process deletes runs past their retention. */
  readonly sweepMs: number | null;
}

const heartbeatConnections = 2;
const pingMs = 3_000;
/** The default lease of workers: an idle sweeper checks at least that often. */
const leaseMs = 10_000;

export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { schema, connections, maxPayloadBytes: maxBytes, logger } = options;
  const located = await locateSchema(options.url, schema);
  const address = { url: located.url, schema };
  const store = new PostgresStore(address, { connections });
  // Remote workers do not see the database: the server warns in their place.
  const { isCopy, isHeld, identity } = await store.state().catch(async (error: unknown) => {
    await store.close();
    await located.close();
    throw error;
  });
  if (isCopy) logger.warn({ identity }, copyWarning);
  if (isHeld) logger.warn({ identity }, heldWarning);
  const heartbeats = new PostgresStore(address, { connections: heartbeatConnections });
  const pings = new PostgresStore(address, { connections: 1, statementMs: pingMs });
  const hub = hubOf(addressKey(address));
  const results = new Results(store, hub, logger);
  const starter = new Starter(store, hub, {
    isOutage,
    isBusy,
    lanes: new LockLanes({ isBusy, connections }),
  });
  const events = new Events(logger);
  hub.listeners.add(events);
  const metrics = new Metrics(events);
  const gauges = new Gauges((most) => store.gauges(most));
  return {
    url: located.url,
    store,
    heartbeats,
    hub,
    events,
    metrics: {
      contentType: expositionType,
      text: async () => metrics.text() + (await gauges.text()),
    },
    newRun: (name, input, given, context = {}) => newRun(name, input, given, { ...context, maxBytes }),
    start: async (run) => toStarted(await starter.start(run)),
    startMany: async (runs) => (await starter.startMany(runs)).map((started) => toStarted(started)),
    waitForEnd: (runId, timeoutMs, signal) => results.wait(runId, timeoutMs, signal),
    listRuns: async (given, prefixes) => {
      const { runs, last } = await store.list({ ...toFilter(toPageQuery(given)), prefixes });
      return { runs: runs.map(toRun), cursor: last === null ? null : writeCursor(last) };
    },
    countRuns: async (given, prefixes) =>
      store.count({ ...toFilter({ ...toCountQuery(given), cursor: null, limit: 1 }), prefixes }),
    steps: (runId, cursor) => stepsPage(store, runId, cursor),
    why: async (runId, allows) => {
      const facts = await store.why(runId);
      if (facts === null) return null;
      const hidden = new Set(otherRuns(facts));
      for (const run of await store.named([...hidden])) if (allows(run)) hidden.delete(run.runId);
      return explainRun(runId, facts, hidden);
    },
    subscribe: (pattern, target, owner) =>
      subscribe((...given) => store.subscribe(...given, owner), pattern, target),
    setLimit: async (limit) => {
      await setLimit(store, limit);
      hub.hint(null);
    },
    reports: (prefixes) => reportsOver(async () => store.reports(prefixes)),
    schedules: new LocalSchedules(store, hub, currentActor),
    declaredSchedules: new LocalSchedules(store, hub, () => null),
    startFirer: () => new ScheduleFirer({ store, hub, events, logger, mayFire: () => true }),
    sendHints: (commits, verdicts) => {
      for (const [index, commit] of commits.entries()) {
        const kind = verdicts[index]?.kind;
        if (kind !== "committed" && kind !== "already") continue;
        sendHints(hub, commit, effectsOf(commit, suspendedMs(commit)));
      }
    },
    startSweeper: ({ reapMs, sweepMs }) =>
      new Sweeper({
        store,
        logger,
        events,
        reapMs,
        sweepMs,
        leaseMs,
        isBusy: () => false,
        onClaimable: (queue) => hub.hint(queue),
        onOverdue: (failed) => hub.overdue(failed),
      }),
    ping: () => pings.ping(),
    close: async (reason) => {
      hub.listeners.delete(events);
      metrics.close();
      results.close(reason);
      await store.close();
      await heartbeats.close();
      await pings.close();
      await located.close();
    },
  };
}

/**
 * How long a suspended workflow waits, by the clock of this machine, which may differ from the
 * database's. A claim that comes too early finds nothing, and one that comes too late was polled
 * before.
 */
function suspendedMs({ transition }: Commit): number | null {
  if (transition.kind !== "suspend" || transition.dueAt === null) return null;
  return Math.max(0, Date.parse(transition.dueAt) - Date.now());
}
