/**
 * Builds the parts of a worker, once its transport is open: the batchers, the releaser, executions,
 * claimers, reservations, the registration and the lease check. It starts nothing. Called by the
 * worker.
 */

import type { AnyDefinition } from "../define/definition.js";
import type { Events } from "../observe/events.js";
import type { Observer } from "../observe/observer.js";
import type { WorkerState } from "../run/worker-services.js";
import { InboxWatch } from "../workflow/inbox-watch.js";
import { Batches } from "./batches.js";
import { Claimer } from "./claimer.js";
import { Claimers } from "./claimers.js";
import { Executions } from "./executions.js";
import { LeaseCheck } from "./lease-check.js";
import type { ServeSettings } from "./options.js";
import { commitBatcher, journalBatcher } from "./outcome-batches.js";
import { Registration, type RegistrationHost } from "./registration.js";
import { Releaser } from "./release.js";
import { Reservations } from "./reservations.js";
import type { WorkerTransport } from "./transport.js";

export interface OpenWorker {
  readonly transport: WorkerTransport;
  readonly releaser: Releaser;
  readonly inboxes: InboxWatch;
  readonly executions: Executions;
  readonly claimers: Claimers;
  readonly reservations: Reservations;
  readonly registration: Registration;
  readonly leaseCheck: LeaseCheck;
}

export interface OpenWorkerHost
  extends Pick<WorkerState, "workerId" | "isStopping">, Pick<RegistrationHost, "onLost" | "onHeartbeat"> {
  readonly settings: ServeSettings;
  /** The definitions by `name@version`. */
  readonly served: ReadonlyMap<string, AnyDefinition>;
  readonly events: Events;
  readonly observer: Observer;
  /** Whether the worker may begin another run. */
  mayBegin(): boolean;
  /** The first run begins, after a time without any. */
  onBusy(): void;
  /** A run or a reservation has ended. */
  onEnded(): void;
  /** A claim that was sent at `askedMs` found when the next schedule is due; null: there is none. */
  onSchedule(dueAtMs: number | null, askedMs: number): void;
}

export function openWorker(transport: WorkerTransport, host: OpenWorkerHost): OpenWorker {
  const { settings, served, events, observer } = host;
  const { logger, recordStacks, maxStepMs, maxPayloadBytes, drainMs } = settings;
  const { store, hub } = transport;
  const claiming = new Set<string>();
  const releaser = new Releaser(store, logger, () => {
    for (const claimer of claimers) claimer.rewind();
  });
  const commits = commitBatcher(
    store,
    logger,
    {
      onClaimable: (claimable) => hub.claimable(claimable),
      onOrphan: (orphan) => releaser.release([orphan]),
    },
    events,
  );
  const inboxes = new InboxWatch(store, logger);
  const makeClaimer = (
    queue: string,
    concurrency: number,
    definitions: readonly Pick<AnyDefinition, "name" | "version">[],
  ): Claimer => {
    const { prefetch, minDemand, pollMs, maxPollMs } = settings;
    const claimer: Claimer = new Claimer(
      {
        queue,
        concurrency,
        prefetch,
        minDemand,
        pollMs,
        maxPollMs,
        waitMs: transport.waitMs,
        names: definitions.map(({ name }) => name),
        versions: definitions.map(({ version }) => version),
      },
      {
        store,
        logger,
        events,
        workerId: () => (host.mayBegin() ? host.workerId() : null),
        claiming,
        onSchedule: (dueAtMs, askedMs) => host.onSchedule(dueAtMs, askedMs),
        isClockStill: () => hub.clock.isStill,
        execute: (claim) => executions.execute(claim, claimer),
        release: (claims) => releaser.release(claims),
      },
    );
    return claimer;
  };
  const claimers: Claimers = new Claimers(settings.queues, settings.definitions, {
    single: makeClaimer,
    batched: (queue, concurrency, definition) => {
      const claimer = makeClaimer(queue, concurrency * definition.batch.size, [definition]);
      const batches = new Batches(definition, {
        queue,
        concurrency,
        clock: hub.clock,
        events,
        drainMs,
        slots: claimer.slots,
      });
      return { claimer, batches };
    },
  });
  const executions: Executions = new Executions({
    services: {
      store,
      commits,
      journal: journalBatcher(store, logger, events),
      inboxes,
      hub,
      observer,
      logger,
      recordStacks,
      limits: { maxStepMs, maxPayloadBytes },
      worker: {
        workerId: () => host.workerId(),
        claiming,
        isStopping: () => host.isStopping(),
      },
    },
    releaser,
    claimers,
    served,
    drainMs,
    mayBegin: () => host.mayBegin(),
    onBusy: () => host.onBusy(),
    onEnded: () => host.onEnded(),
  });
  return {
    transport,
    releaser,
    inboxes,
    executions,
    claimers,
    reservations: new Reservations({
      claiming,
      mayFill: (workerId) => host.mayBegin() && host.workerId() === workerId,
      release: (claim) => releaser.releaseAndWait([claim]),
      onEnded: () => host.onEnded(),
    }),
    registration: new Registration({
      store,
      heartbeat: transport.heartbeat,
      settings,
      onLost: (reason) => host.onLost(reason),
      onHeartbeat: (workerId, confirmed, isBack) => host.onHeartbeat(workerId, confirmed, isBack),
    }),
    leaseCheck: new LeaseCheck({
      store,
      logger,
      releaser,
      executions,
      claimers,
      claiming,
      commits,
      workerId: () => host.workerId(),
      ended: (runId) => executions.ended(runId),
    }),
  };
}
