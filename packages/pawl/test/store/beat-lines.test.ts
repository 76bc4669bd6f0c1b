import { expect, it } from "vitest";
import { BeatLines } from "../../dist/store/beat-lines.js";
import type { Beats } from "../../dist/store/beats.js";

const patienceMs = 60_000;

/** Lines that are opened when the test says so. */
function scene() {
  const opened: Beats[] = [];
  const ended: Beats[] = [];
  let refusal: Error | null = null;
  const lines = new BeatLines(async () => {
    if (refusal !== null) throw refusal;
    const line: Beats = {
      beat: async () => ({
        alive: true,
        cancelled: {},
        held: null,
        databaseHeld: false,
        timeline: null,
        schemaProblem: null,
      }),
      end: async () => void ended.push(line),
    };
    opened.push(line);
    return line;
  });
  const beat = () => lines.use(patienceMs, (line) => line.beat("w", null, patienceMs));
  return { lines, opened, ended, beat, refuse: (error: Error | null) => (refusal = error) };
}

it("one line serves all who beat in turn", async () => {
  const { beat, opened } = scene();
  await Promise.all(Array.from({ length: 25 }, beat));
  for (let n = 0; n < 25; n++) await beat();
  expect(opened).toHaveLength(1);
});

it("a beat that hangs keeps nobody: another line is opened", async () => {
  const { lines, beat, opened } = scene();
  await beat();
  let release = (): void => {};
  const hanging = lines.use(patienceMs, () => new Promise<void>((resolve) => (release = resolve)));
  await Promise.all(Array.from({ length: 25 }, beat));
  expect(opened).toHaveLength(2);
  release();
  await hanging;
});

it("a line on which a beat failed is not used again", async () => {
  const { lines, beat, opened, ended } = scene();
  await expect(lines.use(patienceMs, () => Promise.reject(new Error("silent")))).rejects.toThrow("silent");
  await beat();
  expect(opened).toHaveLength(2);
  expect(ended).toEqual([opened[0]]);
});

it("after a beat that failed, the lines that nobody uses are closed too", async () => {
  const { lines, beat, opened, ended } = scene();
  await beat();
  let release = (): void => {};
  const hanging = lines.use(patienceMs, () => new Promise<void>((resolve) => (release = resolve)));
  await beat();
  release();
  await hanging;
  expect(opened).toHaveLength(2);
  await expect(lines.use(patienceMs, () => Promise.reject(new Error("reset")))).rejects.toThrow("reset");
  expect(ended).toHaveLength(2);
  await beat();
  expect(opened).toHaveLength(3);
});

it("who waits for a line that cannot be opened is told, and the next try opens one", async () => {
  const { beat, opened, refuse } = scene();
  refuse(new Error("nobody is there"));
  const tries = await Promise.allSettled(Array.from({ length: 5 }, beat));
  expect(tries.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
  refuse(null);
  await beat();
  expect(opened).toHaveLength(1);
});

it("all lines are closed at the end, those in use when they are given back", async () => {
  const { lines, beat, opened, ended } = scene();
  await beat();
  let release = (): void => {};
  const late = lines.use(patienceMs, () => new Promise<void>((resolve) => (release = resolve)));
  await lines.end();
  expect(ended).toHaveLength(0);
  release();
  await late;
  expect(ended).toEqual(opened);
});
