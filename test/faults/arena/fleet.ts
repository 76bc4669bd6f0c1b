/** Worker processes that can be killed and are replaced, and the ledger in which their steps write what they do. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ServeOptions } from "pawl";
import { testDatabase } from "../../support/database.js";
import { type Chance, makeChance } from "./seed.js";

const program = fileURLToPath(new URL("../../dist/faults/programs/worker.js", import.meta.url));

const maxLines = 200_000;

interface WorkerOptions {
  /** What differs from what `worker.ts` gives to `serve`. */
  readonly serve?: ServeOptions;
  /** Another program than `worker.ts`: that of another release. */
  readonly program?: string;
  /** Options of Node.js. */
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Sample {
  readonly heapBytes: number;
  readonly files: number;
  /** Of the process itself. */
  readonly listeners: number;
  /** Timers and sockets. */
  readonly resources: number;
}

export interface Kill {
  readonly pid: number;
  readonly at: Date;
}

export interface Fleet {
  /** Starts workers until this many run, and waits until they serve. */
  grow(size: number, options?: WorkerOptions): Promise<void>;
  /** The process ids of those that serve. */
  pids(): number[];
  /** How many lines with this text the workers have logged. */
  logged(text: string): number;
  /** From now on the oldest is neither killed nor stopped. */
  spareTheOldest(): void;
  /** What the oldest holds, after a collection of garbage. */
  sampleTheOldest(): Promise<Sample>;
  /** Ends one that serves with SIGKILL; answers whether there was one. */
  killOne(): boolean;
  /** Those that were, and when. */
  readonly kills: readonly Kill[];
  /** How long each took until it served. */
  readonly bootsMs: readonly number[];
  /** Stops one that serves for so long (SIGSTOP, SIGCONT); answers whether there was one. */
  freezeOne(ms: number): boolean;
  /** Tells all to stop in peace and waits until they have. */
  drain(): Promise<void>;
  /** How many have said that they stopped. */
  stopped(): number;
  /** Sends all a signal, and waits for nothing. */
  signal(signal: NodeJS.Signals): void;
  /** How many ended that were not told to. */
  deaths(): number;
  /** From now on a worker that ends is replaced. */
  replaceTheDead(): void;
  stop(): Promise<void>;
}

export async function makeLedger() {
  const ledger = await testDatabase({ empty: true });
  await ledger.sql(
    "create table public.ledger (id bigserial, run_id text, step text, attempt int, version int, pid int, at timestamptz default clock_timestamp())",
  );
  await ledger.sql("create index on public.ledger (run_id, id)");
  return ledger;
}

export function makeFleet(
  databaseUrl: string,
  ledgerUrl: string,
  chance: Chance = makeChance(Math.floor(Math.random() * 2 ** 31)),
): Fleet {
  const workers = new Set<ChildProcess>();
  const serving = new Set<ChildProcess>();
  const lines: string[] = [];
  const kills: Kill[] = [];
  const bootsMs: number[] = [];
  let deaths = 0;
  let replaces = false;
  let isEnding = false;
  let stopped = 0;

  const spawn = async (options: WorkerOptions): Promise<void> => {
    const begunMs = performance.now();
    const worker = fork(options.program ?? program, {
      env: {
        ...process.env,
        DATABASE_URL: databaseUrl,
        LEDGER_URL: ledgerUrl,
        PAWL_URL: "",
        SERVE_OPTIONS: JSON.stringify(options.serve ?? {}),
        ...options.env,
      },
      execArgv: [...(options.execArgv ?? [])],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    workers.add(worker);
    createInterface({ input: worker.stderr! }).on("line", (line) => {
      if (lines.length < maxLines) lines.push(line);
    });
    worker.once("exit", () => {
      workers.delete(worker);
      serving.delete(worker);
      if (!isEnding) deaths++;
      if (replaces) void spawn(options);
    });
    await new Promise<void>((resolve) => {
      worker.on("message", (message) => {
        if (message === "stopped") stopped++;
        else if (message === "ready") {
          serving.add(worker);
          bootsMs.push(performance.now() - begunMs);
        }
        resolve();
      });
      worker.once("exit", () => resolve());
    });
  };

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    replaces = false;
    isEnding = true;
    await Promise.all(
      [...workers].map(
        (worker) =>
          new Promise<void>((resolve) => {
            worker.once("exit", () => resolve());
            worker.kill(signal);
          }),
      ),
    );
  };

  let spared: ChildProcess | undefined;
  const pick = (): ChildProcess | undefined =>
    chance.pick([...serving].filter((worker) => worker !== spared));

  return {
    grow: async (size, options = {}) => {
      isEnding = false;
      await Promise.all(Array.from({ length: size - workers.size }, () => spawn(options)));
    },
    pids: () => [...serving].map(({ pid }) => pid!),
    logged: (text) => lines.filter((line) => line.includes(text)).length,
    spareTheOldest: () => {
      spared = [...serving][0];
    },
    sampleTheOldest: async () => {
      const [oldest] = serving;
      if (oldest === undefined) throw new Error("no worker serves");
      const answer = once(oldest, "message");
      oldest.send("sample");
      return ((await answer) as [Sample])[0];
    },
    killOne: () => {
      const victim = pick();
      if (victim === undefined) return false;
      serving.delete(victim);
      kills.push({ pid: victim.pid!, at: new Date() });
      return victim.kill("SIGKILL");
    },
    kills,
    bootsMs,
    freezeOne: (ms) => {
      const victim = pick();
      if (victim === undefined) return false;
      setTimeout(() => victim.kill("SIGCONT"), ms);
      return victim.kill("SIGSTOP");
    },
    drain: () => end("SIGTERM"),
    stopped: () => stopped,
    signal: (signal) => {
      for (const worker of serving) worker.kill(signal);
    },
    deaths: () => deaths,
    replaceTheDead: () => {
      replaces = true;
    },
    stop: () => end("SIGKILL"),
  };
}
