/** Worker processes that can be killed and are replaced, and the ledger in which their steps write what they do. */

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { testDatabase } from "../support/database.js";
import { type Chance, makeChance } from "./seed.js";

const program = fileURLToPath(new URL("../dist/faults/worker.js", import.meta.url));

export interface Fleet {
  /** Starts workers until this many run, and waits until they serve. */
  grow(size: number): Promise<void>;
  /** Ends one that serves with SIGKILL; answers whether there was one. */
  killOne(): boolean;
  /** Stops one that serves for so long (SIGSTOP, SIGCONT); answers whether there was one. */
  freezeOne(ms: number): boolean;
  /** Tells all to stop in peace and waits until they have. */
  drain(): Promise<void>;
  /** How many ended by themselves or were killed. */
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
  return ledger;
}

export function makeFleet(
  databaseUrl: string,
  ledgerUrl: string,
  chance: Chance = makeChance(Math.floor(Math.random() * 2 ** 31)),
): Fleet {
  const workers = new Set<ChildProcess>();
  const serving = new Set<ChildProcess>();
  let deaths = 0;
  let replaces = false;

  const spawn = async (): Promise<void> => {
    const worker = fork(program, {
      env: { ...process.env, DATABASE_URL: databaseUrl, LEDGER_URL: ledgerUrl, PAWL_URL: "" },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    workers.add(worker);
    worker.stderr!.resume();
    worker.once("exit", () => {
      workers.delete(worker);
      serving.delete(worker);
      deaths++;
      if (replaces) void spawn();
    });
    await new Promise<void>((resolve) => {
      worker.once("message", () => {
        serving.add(worker);
        resolve();
      });
      worker.once("exit", () => resolve());
    });
  };

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    replaces = false;
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

  return {
    grow: async (size) => {
      await Promise.all(Array.from({ length: size - workers.size }, spawn));
    },
    killOne: () => {
      if (serving.size === 0) return false;
      const victim = chance.pick([...serving]);
      serving.delete(victim);
      return victim.kill("SIGKILL");
    },
    freezeOne: (ms) => {
      if (serving.size === 0) return false;
      const victim = chance.pick([...serving]);
      setTimeout(() => victim.kill("SIGCONT"), ms);
      return victim.kill("SIGSTOP");
    },
    drain: () => end("SIGTERM"),
    deaths: () => deaths,
    replaceTheDead: () => {
      replaces = true;
    },
    stop: () => end("SIGKILL"),
  };
}
