/**
 * One case on the real functions: the runs are brought into place, the two operations meet at the barrier, what was rolled back
 * or refused because of a lock is sent again, as the engine does, and the laws are checked at once and when all is quiet.
 */

import type { TestDatabase } from "../support/database.js";
import { register } from "../support/store.js";
import { type Barrier, interleave } from "./barrier.js";
import { type Connections, connectionsTo } from "./connections.js";
import { drain } from "./drain.js";
import { expectLawful, expectQuiet } from "./laws.js";
import type { Case } from "./layouts.js";
import type { Answer } from "./operations.js";
import { Scene } from "./scene.js";

export interface Meetings {
  readonly connections: Connections;
  /** Fails if a law is broken; answers whether the second one had to wait. */
  meet(one: Case): Promise<boolean>;
}

export async function meetings(database: TestDatabase): Promise<Meetings> {
  const connections = await connectionsTo(database);
  const barrier = {
    first: await connections.open(),
    second: await connections.open(),
    observer: await connections.open(),
  };
  await register(database, "live");
  await database.sql("update settings set beats_since = clock_timestamp() - interval '1 day'");
  return {
    connections,
    meet: async (one) => {
      const scene = new Scene(database);
      try {
        return await meet(one, scene, barrier);
      } finally {
        await scene.clear();
      }
    },
  };
}

async function meet(given: Case, scene: Scene, barrier: Barrier): Promise<boolean> {
  const { end } = given;
  const subjects = await given.prepare(scene);
  await scene.age();
  const call = (by: "first" | "second", patient = true): Promise<Answer> =>
    given[by].call({ on: barrier[by], scene, subject: subjects[by], patient });
  const met = await interleave(barrier, end, { first: () => call("first"), second: () => call("second") });
  let { first, second } = met;
  if (end !== "rolls back") first.note();
  while (second.isBusy) second = await call("second", false);
  second.note();
  if (end === "rolls back") {
    first = await call("first");
    first.note();
  }
  const ended = await expectLawful(scene);
  await drain(scene, barrier.observer);
  const rows = await expectQuiet(scene, ended);
  first.holds(rows.get(subjects.first.runId)?.status);
  second.holds(rows.get(subjects.second.runId)?.status);
  return met.waited;
}
