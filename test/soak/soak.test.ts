/**
 * Random faults on one arena under load, for `PAWL_SOAK_MINUTES`, with workers whose clocks are an hour off. Again and again everything is left
 * in peace until nothing is open; then every invariant must hold, all that has ended is deleted, and after a time of idleness a worker that
 * lives from the beginning to the end tells what it holds: neither its heap nor its open files, listeners, timers and sockets may grow.
 */

import { join } from "node:path";
import { connect } from "pawl";
import { afterAll, expect, it } from "vitest";
import { makeArena } from "../faults/arena/arena.js";
import { fillDisk, mountDisk } from "../faults/arena/disk.js";
import type { Sample } from "../faults/arena/fleet.js";
import { makeNetwork, type Network } from "../faults/arena/network.js";
import { harmful, poisons } from "../faults/programs/poison.js";
import { makePromotions } from "../faults/arena/promotions.js";
import { wait } from "../faults/arena/wait.js";

const minutes = Number(process.env["PAWL_SOAK_MINUTES"] ?? "1");
const endMs = Date.now() + minutes * 60_000;
const faultsPerRound = 10;
const idleMs = 5_000;
/** How much more the oldest worker may hold at the end than after the first round. */
const mayGrow: Sample = { heapBytes: 24 * 1024 * 1024, files: 12, listeners: 2, resources: 12 };

const disk = mountDisk(1_000);
/** Little is kept: the disk is small, and holds the files of two servers during a failover. */
const settings = { max_wal_size: "64MB", min_wal_size: "32MB", wal_keep_size: "32MB" };
let network!: Network;
const arena = await makeArena({
  ...(disk === null ? {} : { directory: join(disk, "data") }),
  settings,
  through: async (url, chance) => (network = await makeNetwork(url, chance)).url,
});
const { fleet, load, chance } = arena;
const promotions = makePromotions(arena, network, { settings, ...(disk === null ? {} : { under: disk }) });
const pawl = connect(network.url);
afterAll(() => pawl.close());

const faults: Record<string, () => Promise<unknown>> = {
  "a worker is killed": async () => fleet.killOne(),
  "a worker is stopped for 3 s": async () => fleet.freezeOne(3_000),
  "the database crashes": () => promotions.primary().restart({ mode: "immediate" }),
  "the database restarts": () => promotions.primary().restart({ mode: "fast" }),
  "a synchronous standby takes over": () => promotions.failOver(500),
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
  "steps do the worst": async () => {
    // Those that never end would have to be bounded by a time, as all others would be then.
    const acts = harmful.filter((act) => act !== "never");
    await Promise.all(
      poisons.map(({ name }) => pawl.start(name, { act: chance.pick(acts) }).catch(() => "not acknowledged")),
    );
  },
};
if (disk !== null) {
  faults["the disk is full for 2 s"] = async () => {
    const free = fillDisk(disk);
    await wait(2_000);
    free();
    await promotions.primary().start();
  };
}

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
  await arena.quiet(300_000);
  runs += load.history.started.length;
  await arena.judgeAndForget();
  await wait(idleMs);
  samples.push(await fleet.sampleTheOldest());
  rounds++;
  const minutesLeft = Math.max(0, Math.ceil((endMs - Date.now()) / 60_000));
  process.stdout.write(
    `round ${rounds}: ${runs} runs, all invariants hold; the oldest worker: ${show(samples.at(-1)!)}; ${minutesLeft} min left\n`,
  );
}

const show = ({ heapBytes, files, listeners, resources }: Sample): string =>
  `${(heapBytes / 1024 / 1024).toFixed(1)} MiB of heap, ${files} files, ${listeners} listeners, ${resources} timers and sockets`;

const hour = 3_600_000;
const shiftClock = new URL("../dist/faults/programs/shift-clock.js", import.meta.url).href;

it(
  `random faults for ${minutes} minutes: every invariant holds whenever it is quiet, and nothing grows`,
  async () => {
    fleet.replaceTheDead();
    await fleet.grow(1, { execArgv: ["--expose-gc"] });
    fleet.spareTheOldest();
    for (const [index, shiftMs] of [-hour, hour].entries()) {
      const env = { CLOCK_SHIFT_MS: String(shiftMs) };
      await fleet.grow(index + 2, { execArgv: ["--import", shiftClock], env });
    }
    while (Date.now() < endMs) await round();

    const first = samples[Math.min(1, samples.length - 1)]!;
    const last = samples.at(-1)!;
    process.stdout.write(
      [
        `soaked for ${minutes} min with seed ${chance.seed}: ${runs} runs, ${rounds} rounds, ${network.counts.staleWrites} stale writes refused, ` +
          `${network.counts.lostAnswers} answers lost, ${load.history.unknown} unknown to the client`,
        ...[...happened].map(([fault, times]) => `  ${fault}: ${times}`),
        `  the oldest worker after the ${samples.length > 1 ? "second" : "first"} round: ${show(first)}`,
        `  and at the end: ${show(last)}`,
        "",
      ].join("\n"),
    );
    for (const [what, more] of Object.entries(mayGrow) as [keyof Sample, number][]) {
      expect(last[what] - first[what], what).toBeLessThan(more);
    }
    await load.start(40);
    await arena.quiet();
    await arena.judge();
  },
  minutes * 60_000 + 600_000,
);
