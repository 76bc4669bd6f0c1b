/**
 * How the runs of two operations are related, and from that all cases to be tried: every pair of operations, each of the
 * two first, in every phase in which one of them changes something, on one run, on two children of one parent, on a
 * child and its parent, on two runs of one partition key, and on two runs of a concurrency limit with one slot.
 */

import { claim, claimOne, commit, spawn } from "../support/store.js";
import type { End } from "./barrier.js";
import { handing, naming, type Operation, operations, spawning } from "./operations.js";
import { newClaimId, type Phase, type Scene, type Subject } from "./scene.js";

export interface Case {
  readonly name: string;
  readonly first: Operation;
  readonly second: Operation;
  readonly end: End;
  prepare(scene: Scene): Promise<{ first: Subject; second: Subject }>;
}

type Prepare = Case["prepare"];

const all = Object.values(operations);

const onOneRun =
  (phase: Phase): Prepare =>
  async (scene) => {
    const subject = await scene.bring(await scene.start(), phase);
    return { first: subject, second: subject };
  };

/** A parent that waits for `size` children, which are runnable. */
async function family(scene: Scene, size: number): Promise<{ parentId: string; children: string[] }> {
  const { database, queue } = scene;
  const parentId = await scene.start();
  const parent = await claimOne(database, { queue, workerId: "live", claimId: newClaimId() });
  await commit(database, parent, spawn(...Array.from({ length: size }, () => ({ queue }))));
  const rows = await database.sql<{ id: string }>(
    "select id from runs where parent_id = $1 order by position",
    [parentId],
  );
  return { parentId, children: rows.map(({ id }) => id) };
}

const onChildren =
  (first: Phase, second: Phase): Prepare =>
  async (scene) => {
    const { parentId, children } = await family(scene, 2);
    return {
      first: await scene.bring(children[0]!, first, { parentId }),
      second: await scene.bring(children[1]!, second, { parentId }),
    };
  };

const onChildAndParent =
  (phase: Phase, isChildFirst: boolean): Prepare =>
  async (scene) => {
    const { parentId, children } = await family(scene, 1);
    const child = await scene.bring(children[0]!, phase, { parentId });
    const parent = await scene.bring(parentId, "runnable");
    return isChildFirst ? { first: child, second: parent } : { first: parent, second: child };
  };

const executes = (phase: Phase): boolean => phase === "executing" || phase === "orphaned";

/** In the order in which runs of one key can be brought there: waiting ones let the key go, executing ones keep it. */
const keyOrder: readonly Phase[] = ["expired", "waiting", "due", "executing", "orphaned", "runnable"];

/** Two runs of one key and a third that is last in line, blocked if one of the two holds the key. */
const onOneKey =
  (first: Phase, second: Phase): Prepare =>
  (scene) =>
    inLine(scene, first, second, { partitionKey: `key of ${scene.queue}` });

/** The same of a concurrency limit that has one slot. */
const onOneSlot =
  (first: Phase, second: Phase): Prepare =>
  async (scene) => {
    const noRate = { allowed: null, periodMs: null, burst: null };
    await scene.database.store.setLimit({ name: "slot", ...noRate, concurrent: 1 });
    return inLine(scene, first, second, { options: { concurrency: `slot:${scene.queue}` } });
  };

async function inLine(
  scene: Scene,
  first: Phase,
  second: Phase,
  given: { partitionKey?: string; options?: { concurrency: string } },
): ReturnType<Prepare> {
  const bring = async (phase: Phase): Promise<Subject> =>
    scene.bring(await scene.start(given), phase, { partitionKey: given.partitionKey ?? null });
  const isFirstEarlier = keyOrder.indexOf(first) <= keyOrder.indexOf(second);
  const earlier = await bring(isFirstEarlier ? first : second);
  const later = await bring(isFirstEarlier ? second : first);
  await scene.start(given);
  if (executes(first) || executes(second))
    await claim(scene.database, { queue: scene.queue, workerId: "live" });
  return isFirstEarlier ? { first: earlier, second: later } : { first: later, second: earlier };
}

/** A run that holds its key and two more in line for it. */
const onHolder: Prepare = async (scene) => {
  const partitionKey = `key of ${scene.queue}`;
  const subject = await scene.bring(await scene.start({ partitionKey }), "executing", { partitionKey });
  await scene.start({ partitionKey });
  await scene.start({ partitionKey });
  await claim(scene.database, { queue: scene.queue, workerId: "live" });
  return { first: subject, second: subject };
};

function* layouts(first: Operation, second: Operation): Generator<{ where: string; prepare: Prepare }> {
  for (const phase of new Set([first.from, second.from])) {
    yield { where: `one run, ${phase}`, prepare: onOneRun(phase) };
  }
  yield { where: "two children of one parent", prepare: onChildren(first.from, second.from) };
  for (const [isChildFirst, child, parent] of [
    [true, first, second],
    [false, second, first],
  ] as const) {
    if (parent !== operations.signal && parent !== operations.cancel) continue;
    const where = isChildFirst ? "a child and its parent" : "a parent and its child";
    yield { where, prepare: onChildAndParent(child.from, isChildFirst) };
  }
  if (!(executes(first.from) && executes(second.from))) {
    yield { where: "two runs of one key", prepare: onOneKey(first.from, second.from) };
    yield { where: "two runs of one slot", prepare: onOneSlot(first.from, second.from) };
  }
}

function* named(
  first: Operation,
  second: Operation,
  { where, prepare }: { where: string; prepare: Prepare },
  ends: readonly End[] = ["commits", "rolls back"],
): Generator<Case> {
  for (const end of ends) {
    const ending = end === "lingers" ? "is still in flight when it answers" : end;
    const name = `${second.name} while a ${first.name} is in flight that ${ending}: ${where}`;
    yield { name, first, second, end, prepare };
  }
}

/** Every pair of the nine operations. */
export function* pairs(): Generator<Case> {
  for (const first of all) {
    for (const second of all) {
      for (const layout of layouts(first, second)) yield* named(first, second, layout);
      if (!second.neverWaits) continue;
      const alone = { where: `one run, ${second.from}`, prepare: onOneRun(second.from) };
      yield* named(first, second, alone, ["lingers"]);
    }
  }
}

/** Commits that do more: they start children that a cancel goes down to, or claim the next run of their key. */
export function* furtherCases(): Generator<Case> {
  const alone = { where: "one run, executing", prepare: onOneRun("executing") };
  yield* named(spawning, operations.cancel, alone);
  yield* named(operations.cancel, spawning, alone);
  for (const other of all.filter(({ from }) => !executes(from))) {
    const where = "two runs of one key";
    for (const passing of [handing, naming]) {
      yield* named(passing, other, { where, prepare: onOneKey("executing", other.from) });
      yield* named(other, passing, { where, prepare: onOneKey(other.from, "executing") });
    }
  }
  for (const other of all) {
    const where = "the run that ends";
    yield* named(naming, other, { where, prepare: onHolder });
    yield* named(other, naming, { where, prepare: onHolder });
  }
}
