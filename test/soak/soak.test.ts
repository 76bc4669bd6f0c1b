/**
 * Random faults on one arena under load, for `PAWL_SOAK_MINUTES`. Again and again everything is left in peace until nothing is open;
 * then every invariant must hold, all that has ended is deleted, and a worker that lives from the beginning to the end tells what it
 * holds: neither its heap nor its open files may grow.
 */

import { expect, it } from "vitest";
import { makeArena } from "../faults/arena.js";
import type { Sample } from "../faults/fleet.js";
import { makeNetwork, type Network } from "../faults/network.js";
import { wait } from "../faults/wait.js";

const minutes = Number(process.env["PAWL_SOAK_MINUTES"] ?? "1");
const endMs = Date.now() + minutes * 60_000;
const faultsPerRound = 10;
const grownBytes = 24 * 1024 * 1024;
const grownFiles = 12;

let network!: Network;
const arena = await makeArena({
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { server, fleet, load, chance } = arena;

const faults: Readonly<Record<string, () => Promise<unknown>>> = {
  "a worker is killed": async () => fleet.killOne(),
  "a worker is stopped for 3 s": async () => fleet.freezeOne(3_000),
  "the database crashes": () => server.restart({ mode: "immediate" }),
  "the database restarts": () => server.restart({ mode: "fast" }),
  "all connections are reset": async () => network.reset(),
  "no byte passes for 3 s": async () => {
    network.swallow(true);
    await wait(3_000);
    network.swallow(false);
  },
  "everything takes 200 ms": async () => {
    network.delay(100);
    await wait(2_000);
    network.delay(0);
  },
  "answers are lost": async () => {
    network.loseAnswers(15);
    await wait(2_000);
    network.loseAnswers(Infinity);
  },
};

const happened = new Map<string, number>(Object.keys(faults).map((fault) => [fault, 0]));
const samples: Sample[] = [];
let runs = 0;
let rounds = 0;

async function round(): Promise<void> {
  const failing = async (): Promise<void> => {
    for (let count = 0; count < faultsPerRound && Date.now() < endMs; count++) {
      const fault = chance.pick(Object.keys(faults));
      await faults[fault]!();
      happened.set(fault, happened.get(fault)! + 1);
      await wait(300 + chance.below(1_500));
    }
  };
  await load.during(failing(), 6, 30);
  await arena.quiet(180_000);
  runs += load.history.started.length;
  await arena.judgeAndForget();
  samples.push(await fleet.sampleTheOldest());
  rounds++;
  const { heapBytes, files } = samples.at(-1)!;
  const minutesLeft = Math.max(0, Math.ceil((endMs - Date.now()) / 60_000));
  process.stdout.write(
    `round ${rounds}: ${runs} runs, all invariants hold; the oldest worker: ${mebibytes(heapBytes)} MiB of heap, ` +
      `${files} files; ${minutesLeft} min left\n`,
  );
}

const mebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);

it(
  `random faults for ${minutes} minutes: every invariant holds whenever it is quiet, and nothing grows`,
  async () => {
    fleet.replaceTheDead();
    await fleet.grow(3, { execArgv: ["--expose-gc"] });
    fleet.spareTheOldest();
    while (Date.now() < endMs) await round();

    const report = [...happened].map(([fault, times]) => `  ${fault}: ${times}`);
    const first = samples[Math.min(1, samples.length - 1)]!;
    const last = samples.at(-1)!;
    process.stdout.write(
      [
        `soaked for ${minutes} min with seed ${chance.seed}: ${runs} runs, ${rounds} rounds, ${network.counts.staleWrites} stale writes refused, ` +
          `${network.counts.lostAnswers} answers lost`,
        ...report,
        `  heap of the oldest worker: ${mebibytes(first.heapBytes)} → ${mebibytes(last.heapBytes)} MiB, files: ${first.files} → ${last.files}`,
        "",
      ].join("\n"),
    );
    expect(last.heapBytes - first.heapBytes).toBeLessThan(grownBytes);
    expect(last.files - first.files).toBeLessThan(grownFiles);
    await load.start(40);
    await arena.quiet();
    await arena.judge();
  },
  minutes * 60_000 + 600_000,
);
