import { join } from "node:path";
import { expect, it } from "vitest";
import { makeArena } from "../arena/arena.js";
import { fillDisk, mountDisk } from "../arena/disk.js";
import { wait } from "../arena/wait.js";

const disk = mountDisk(300);
if (disk === null) console.info("the test of a full disk is skipped: it has to mount a small one, as root");

it.skipIf(disk === null)(
  "the disk of the database is full, then freed: everything goes on, and nothing acknowledged is lost",
  async () => {
    const arena = await makeArena({
      directory: join(disk!, "data"),
      settings: { max_wal_size: "64MB", min_wal_size: "32MB" },
    });
    const { server, fleet, load } = arena;
    await fleet.grow(2);
    const filling = async (): Promise<void> => {
      for (let times = 0; times < 2; times++) {
        await wait(1_500);
        const free = fillDisk(disk!);
        await wait(3_000);
        free();
        // A server that could not write its log has ended.
        await server.start();
      }
    };
    await load.during(filling());
    await arena.quiet();
    expect(load.history.unknown).toBeGreaterThan(0);
    expect(fleet.deaths()).toBe(0);
    await arena.judge();
  },
  180_000,
);
