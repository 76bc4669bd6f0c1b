/**
 * A worker of the real engine on a store that stores nothing: claims return made-up runs at once,
 * and commits succeed at once. So a bench can measure the cost of the worker without the noise of a
 * database.
 */

import type { AnyDefinition, ServeOptions } from "pawl";
import type { Claimed, ClaimedRun, ClaimRequest, Commit, Verdict, WorkerStore } from "pawl/engine";
import { Hub } from "../../packages/pawl/dist/local/hub.js";
import { checkServe } from "../../packages/pawl/dist/worker/options.js";
import { EngineWorker } from "../../packages/pawl/dist/worker/worker.js";

const committed: Verdict = { kind: "committed", uniqueLost: false, inboxSeq: null, handed: null };

export class WorkerAlone {
  readonly #definition: AnyDefinition;
  readonly #input: string;
  readonly #worker: EngineWorker;
  readonly #hub = new Hub();
  #unclaimed = 0;
  #open = 0;
  #end: () => void = () => {};

  constructor(definition: AnyDefinition, input: string, options: ServeOptions) {
    this.#definition = definition;
    this.#input = input;
    const store: Partial<WorkerStore> = {
      register: async () => {},
      unregister: async () => 0,
      claim: async (request: ClaimRequest) => this.#claim(request),
      commit: async (commits: readonly Commit[]) => this.#commit(commits),
    };
    this.#worker = new EngineWorker(checkServe([definition], options), async () => ({
      store: store as WorkerStore, // a job that ends at once needs no more of it
      hub: this.#hub,
      heartbeat: null,
      sweeps: false,
      schedules: { set: () => Promise.reject(new Error("it declares no schedules")) },
      waitMs: null,
      close: async () => {},
    }));
  }

  /** The µs of CPU time that this process takes for each of so many runs. */
  async work(count: number): Promise<number> {
    await this.#worker.ready;
    const ended = new Promise<void>((resolve) => void (this.#end = resolve));
    const before = process.cpuUsage();
    this.#unclaimed = this.#open = count;
    this.#hub.hint(null);
    await ended;
    // Include the work that follows from the last answers.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.cpuUsage(before);
    return (user + system) / count;
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  #claim({ limit, floor }: ClaimRequest): Claimed {
    const runs: ClaimedRun[] = [];
    for (; runs.length < limit && this.#unclaimed > 0; this.#unclaimed--) {
      runs.push(newRun(this.#definition, this.#input, this.#unclaimed));
    }
    return { runs, more: this.#unclaimed > 0, dueMs: null, throttled: 0, floor, busy: null };
  }

  #commit(commits: readonly Commit[]): { verdicts: Verdict[]; claimable: [] } {
    this.#open -= commits.length;
    if (this.#open === 0) this.#end();
    return { verdicts: commits.map(() => committed), claimable: [] };
  }
}

function newRun({ name, version }: AnyDefinition, input: string, id: number): ClaimedRun {
  return {
    runId: String(id * 64),
    name,
    version,
    step: null,
    priority: 0,
    attempt: 0,
    crashes: 0,
    parentId: null,
    partitionKey: null,
    timedOut: false,
    children: null,
    inboxSeq: 0,
    inbox: [],
    input,
    state: null,
    journal: [],
    waiting: [],
    uniqueLost: false,
    startedMs: Date.now(),
    trace: null,
    extra: null,
  };
}
