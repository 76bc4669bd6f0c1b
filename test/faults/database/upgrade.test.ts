/**
 * An upgrade from the last release: its schema is full of live runs, its workers and its client are at work, and this release
 * migrates the schema under them. Then workers and a client of this release join, and the old ones are killed one by one.
 */

import { pathToFileURL } from "node:url";
import { migrate, type migrate as Migrate } from "pawl";
import { expect, it } from "vitest";
import { schemaVersion } from "../../../packages/pawl/dist/store/postgres/version.js";
import { makeArena } from "../arena/arena.js";
import type { Load } from "../arena/load.js";
import { wait } from "../arena/wait.js";
import { unpackOlderRelease } from "./older-release.js";

const older = await unpackOlderRelease();
const { migrate: olderMigrate } = (await import(pathToFileURL(`${older.package}/dist/index.js`).href)) as {
  migrate: typeof Migrate;
};
const { Load: OlderLoad } = (await import(older.load)) as { Load: typeof Load };

it("an upgrade of a database full of live runs loses nothing, and no error reaches a caller of either release", async () => {
  const { server, fleet, load, sql, quiet, judge, chance } = await makeArena({ migrate: olderMigrate });
  const before = (await sql<{ version: number }>("select max(version) as version from migrations"))[0]!
    .version;
  expect(before).toBeLessThan(schemaVersion);
  const olderLoad = new OlderLoad(server.url, chance, "older");
  try {
    // Runs that wait, sleep, have children and a full key when the schema changes.
    await olderLoad.start(300);
    await fleet.grow(3, { program: older.program });
    fleet.replaceTheDead();
    const upgrading = async (): Promise<void> => {
      await wait(500);
      fleet.killOne();
      const steps = await migrate({ url: server.url });
      expect(steps).toMatchObject({ from: before, to: schemaVersion });
      fleet.killOne();
      await wait(500);
      await fleet.grow(6);
      await load.during(
        (async () => {
          for (let kills = 0; kills < 6; kills++) {
            await wait(400);
            fleet.killOne();
          }
        })(),
        4,
        50,
      );
    };
    await olderLoad.during(upgrading(), 4, 50);
    load.history.started.push(...olderLoad.history.started);
    await quiet();
    console.info(
      `from version ${before} of release ${older.version} to ${schemaVersion}: ${load.history.started.length} runs, ` +
        `${fleet.kills.length} kills`,
    );
    expect(load.history.unknown + olderLoad.history.unknown).toBe(0);
    expect(fleet.deaths()).toBe(fleet.kills.length);
    await judge();
  } finally {
    await olderLoad.close();
  }
}, 240_000);
