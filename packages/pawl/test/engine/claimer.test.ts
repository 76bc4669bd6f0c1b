import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Claimer } from "../../dist/worker/claimer.js";
import type { Claimed, ClaimedRun, ClaimRequest } from "../../dist/store/store.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const nothing: Claimed = { runs: [], more: false, floor: null, busy: null, dueMs: null, throttled: 0 };

/** A claimer whose looks find what `find` says, after as long as it says. */
function claimerThat(
  find: (request: ClaimRequest) => { found?: Partial<Claimed>; tookMs?: number },
  execute: () => Promise<null> = async () => null,
  concurrency = 10,
) {
  const looks: (ClaimRequest & { readonly atMs: number })[] = [];
  const released: string[] = [];
  const claimer = new Claimer(
    {
      queue: "default",
      concurrency,
      prefetch: 0,
      minDemand: 1,
      pollMs: 5,
      maxPollMs: 50,
      waitMs: null,
      names: ["a"],
      versions: [1],
    },
    {
      store: {
        claim: async (request) => {
          looks.push({ ...request, atMs: performance.now() });
          const { found, tookMs = 0 } = find(request);
          if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs));
          return { ...nothing, ...found };
        },
      },
      logger: silent,
      events: { hears: () => false, emit: () => {} },
      workerId: () => "w",
      claiming: new Set(),
      onSchedule: () => {},
      isClockStill: () => false,
      execute,
      release: (claims) => released.push(...claims.map(({ runId }) => runId)),
    },
  );
  return { claimer, looks, released };
}

/** Stops it, whatever it waits for. */
async function ended(claimer: Claimer): Promise<void> {
  const stopped = claimer.stop();
  await vi.advanceTimersByTimeAsync(200);
  await stopped;
}

const oneRun = { runs: [{ runId: "64" } as ClaimedRun], floor: [0, 1_000] as const };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a look that walks far is followed by bounded ones for ten times as long", async () => {
  const { claimer, looks } = claimerThat(({ bounded }) => ({ found: oneRun, tookMs: bounded ? 0 : 105 }));
  claimer.start();
  await vi.advanceTimersByTimeAsync(10_000);
  const whole = looks.filter(({ bounded }) => !bounded);
  expect(whole.length).toBeGreaterThan(3);
  for (const [index, { atMs }] of whole.slice(1).entries()) {
    expect(atMs - whole[index]!.atMs).toBeGreaterThan(1_000);
    expect(atMs - whole[index]!.atMs).toBeLessThan(1_400);
  }
  expect(looks.filter(({ bounded }) => bounded).every(({ floor }) => floor?.[1] === 1_000)).toBe(true);
  await ended(claimer);
});

it("looks that are quick are never bounded, and drop the mark every second", async () => {
  const { claimer, looks } = claimerThat(() => ({ found: oneRun, tookMs: 2 }));
  claimer.start();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looks.some(({ bounded }) => bounded)).toBe(false);
  const dropped = looks.filter(({ floor }) => floor === null);
  expect(dropped.length).toBeGreaterThanOrEqual(9);
  expect(dropped.length).toBeLessThan(12);
  await ended(claimer);
});

it("what becomes claimable during a look lowers the mark that it brings back", async () => {
  const { claimer, looks } = claimerThat(() => ({ found: oneRun, tookMs: 3 }));
  claimer.start();
  await vi.advanceTimersByTimeAsync(1);
  claimer.lower({ queue: "default", priority: 0, microseconds: 700 });
  await vi.advanceTimersByTimeAsync(5);
  expect(looks[1]!.floor).toEqual([0, 700]);
  await ended(claimer);
});

it("a rewind during a look makes the next begin at the head, however long looks take", async () => {
  const { claimer, looks } = claimerThat(() => ({ found: oneRun, tookMs: 100 }));
  claimer.start();
  await vi.advanceTimersByTimeAsync(50);
  claimer.rewind();
  await vi.advanceTimersByTimeAsync(100);
  expect(looks[1]).toMatchObject({ floor: null, bounded: false });
  await ended(claimer);
});

it("a run that is due in a rest is looked for then, and not all the time after", async () => {
  const { claimer, looks } = claimerThat(({ bounded }) =>
    bounded ? {} : { found: { ...oneRun, dueMs: 300 }, tookMs: 105 },
  );
  claimer.start();
  await vi.advanceTimersByTimeAsync(1_000);
  const [first] = looks;
  expect(looks.some(({ atMs }) => atMs - first!.atMs === 300)).toBe(true);
  expect(looks.length).toBeLessThan(60);
  await ended(claimer);
});

it("an idle queue is not looked at more often because looks are slow", async () => {
  const { claimer, looks } = claimerThat(() => ({ tookMs: 10 }));
  claimer.start();
  await vi.advanceTimersByTimeAsync(1_000);
  looks.length = 0;
  await vi.advanceTimersByTimeAsync(6_000);
  expect(looks.length).toBeLessThan(6_000 / 50);
  await ended(claimer);
});

/** As many runs as are asked for, and more are left. */
const plenty = () => {
  let count = 0;
  return ({ limit }: ClaimRequest) => ({
    found: {
      runs: Array.from({ length: limit }, () => ({ runId: String(++count) }) as ClaimedRun),
      more: true,
    },
  });
};
const never = () => new Promise<null>(() => {});

it("while more work waits, the successors of runs that end are claimed in one call while that is written", async () => {
  const ends: (() => void)[] = [];
  const { claimer, looks, released } = claimerThat(
    plenty(),
    () => new Promise((resolve) => ends.push(() => resolve(null))),
  );
  claimer.start();
  await vi.advanceTimersByTimeAsync(20);
  expect(looks.map(({ limit }) => limit)).toEqual([10]);
  for (let run = 0; run < 4; run++) claimer.endBegins();
  await vi.advanceTimersByTimeAsync(20);
  expect(looks.map(({ limit }) => limit)).toEqual([10, 4]);
  expect(ends.length).toBe(10);
  expect(claimer.slots.unstartedIds()).toEqual(["11", "12", "13", "14"]);
  for (const end of ends.slice(0, 4)) {
    claimer.endIsOver();
    end();
  }
  await vi.advanceTimersByTimeAsync(20);
  expect(ends.length).toBe(14);
  expect(claimer.slots.unstartedIds()).toEqual([]);
  expect(looks.length).toBe(2);
  await vi.advanceTimersByTimeAsync(200);
  expect(released).toEqual([]);
  await ended(claimer);
});

it("what was claimed for a slot that does not become free is let go, and for a second nothing is claimed ahead", async () => {
  const { claimer, looks, released } = claimerThat(plenty(), never);
  claimer.start();
  await vi.advanceTimersByTimeAsync(20);
  claimer.endBegins();
  await vi.advanceTimersByTimeAsync(90);
  expect(claimer.slots.unstartedIds()).toEqual(["11"]);
  await vi.advanceTimersByTimeAsync(200);
  expect({ released, unstarted: claimer.slots.unstartedIds() }).toEqual({ released: ["11"], unstarted: [] });
  await vi.advanceTimersByTimeAsync(700);
  expect(looks.length).toBe(2);
  await vi.advanceTimersByTimeAsync(500);
  expect(looks.length).toBeGreaterThan(2);
  await ended(claimer);
});

it("what waits in the buffer is not begun any more once it is to stop", async () => {
  const ends: (() => void)[] = [];
  const { claimer } = claimerThat(plenty(), () => new Promise((resolve) => ends.push(() => resolve(null))));
  claimer.start();
  await vi.advanceTimersByTimeAsync(20);
  claimer.endBegins();
  await vi.advanceTimersByTimeAsync(20);
  expect(claimer.slots.unstartedIds()).toEqual(["11"]);
  const stopped = claimer.stop();
  claimer.endIsOver();
  ends[0]!();
  await vi.advanceTimersByTimeAsync(20);
  await stopped;
  expect(ends.length).toBe(10);
  expect(claimer.slots.takeUnstarted().map(({ runId }) => runId)).toEqual(["11"]);
});

it("without more work nothing is claimed for a slot before it is free", async () => {
  const { claimer, looks } = claimerThat(
    ({ limit }) => ({
      found: { runs: Array.from({ length: limit }, (_, index) => ({ runId: String(index) }) as ClaimedRun) },
    }),
    never,
  );
  claimer.start();
  await vi.advanceTimersByTimeAsync(20);
  claimer.endBegins();
  await vi.advanceTimersByTimeAsync(20);
  expect(looks.length).toBe(1);
  await ended(claimer);
});

it.each([
  {
    concurrency: 1_000,
    order: ["claim", "claim", "run", "run"],
    what: "goes out before the runs of the last one begin",
  },
  { concurrency: 500, order: ["claim", "run", "claim", "run"], what: "waits for the runs of the last one" },
])("with $concurrency slots, a claim for more runs $what", async ({ concurrency, order }) => {
  const seen: string[] = [];
  const { claimer } = claimerThat(
    () => {
      seen.push("claim");
      return { found: { ...oneRun, more: seen.length < 2 }, tookMs: 1 };
    },
    async () => {
      seen.push("run");
      return null;
    },
    concurrency,
  );
  claimer.start();
  await vi.advanceTimersByTimeAsync(4);
  expect(seen.slice(0, 4)).toEqual(order);
  await ended(claimer);
});

it("a claimer that stops begins none of the runs that waited for the next claim", async () => {
  let begun = 0;
  const { claimer } = claimerThat(
    () => ({ found: { ...oneRun, more: true }, tookMs: 1 }),
    async () => {
      begun++;
      return null;
    },
    1_000,
  );
  claimer.start();
  const add = claimer.slots.add.bind(claimer.slots);
  let stopped: Promise<void> | undefined;
  claimer.slots.add = (...given) => {
    add(...given);
    stopped ??= claimer.stop();
  };
  await vi.advanceTimersByTimeAsync(100);
  await stopped;
  expect(begun).toBe(0);
  expect(claimer.slots.takeUnstarted().map(({ runId }) => runId)).toContain("64");
});
