/**
 * `t.crashEverywhere`: executes a definition twice without a crash, to see that it does the same.
 * Then it executes it once for each commit and each side of it, with a worker that dies there and
 * another that takes over. It compares effects and result each time. A worker dies by being cut off
 * from its store (`crashable-store.ts`). Called by `test-pawl.ts`.
 */

import { isDeepStrictEqual } from "node:util";
import type { AnyDefinition, InputOf, RunId } from "../define/definition.js";
import type { ErrorRecord } from "../values/error-record.js";
import { InvalidOption } from "../values/errors.js";
import { checkFunction, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";
import {
  type CrashChange,
  type CrashPoint,
  type CrashReport,
  makeReport,
  type RunEnd,
} from "./crash-report.js";
import type { Write, WriteWatch } from "./crashable-store.js";
import type { TestPawl } from "./test-pawl.js";
import type { TestWorkers } from "./test-workers.js";

export interface CrashOptions<Definition extends AnyDefinition = AnyDefinition> {
  /**
   * Returns the side effects of an execution as data: the mails sent, the rows written. Called
   * after every execution. Return only the new ones (`() => mails.splice(0)`), or clear them in
   * `reset`.
   */
  readonly effects: () => unknown;
  /** Called before every execution, to clear the effects of the previous one. */
  readonly reset?: (() => unknown) | undefined;
  /**
   * Brings a run to its end: sends its signals, advances the clock. Workers may die meanwhile.
   * Default: advance the clock while something is due.
   */
  readonly drive?: ((runId: RunId<Definition>) => unknown) | undefined;
}

/** The parts of a test that `crashEverywhere` uses. */
export interface CrashStage {
  readonly test: Pick<TestPawl, "pawl" | "serve" | "drain">;
  readonly workers: TestWorkers;
  /** Advances the clock from due time to due time, until `isEnough`, or nothing more is due. */
  goOn(isEnough: () => Promise<boolean>): Promise<void>;
}

/** The effects and result of one execution. */
interface Trial {
  readonly effects: unknown;
  readonly result: RunEnd;
  /** The recorded error of a failed run. Not compared: its stack may differ. */
  readonly failure: ErrorRecord | null;
  /** Where the worker died; null if it did not. */
  readonly point: CrashPoint | null;
}

const maxPoints = 2_000;

export async function crashEverywhere<Definition extends AnyDefinition>(
  stage: CrashStage,
  definition: Definition,
  input: InputOf<Definition>,
  options: CrashOptions<Definition>,
): Promise<CrashReport> {
  const given = checkOptions(options, ["effects", "reset", "drive"], "the options of t.crashEverywhere");
  const trials = new Trials(stage, definition, input, {
    effects: checkFunction(given.effects, "effects of t.crashEverywhere"),
    reset: given.reset === undefined ? () => {} : checkFunction(given.reset, "reset of t.crashEverywhere"),
    drive: given.drive === undefined ? undefined : checkFunction(given.drive, "drive of t.crashEverywhere"),
  });
  const isServed = stage.workers.definitions.some(
    ({ name, version }) => name === definition.name && version === definition.version,
  );
  const worker = isServed ? null : await stage.test.serve([definition]);
  try {
    return await trials.report();
  } finally {
    stage.workers.watch(null);
    await worker?.stop();
  }
}

interface Functions {
  readonly effects: () => unknown;
  readonly reset: () => unknown;
  readonly drive: ((runId: string) => unknown) | undefined;
}

class Trials<Definition extends AnyDefinition> {
  readonly #stage: CrashStage;
  readonly #definition: Definition;
  readonly #input: InputOf<Definition>;
  readonly #functions: Functions;

  constructor(stage: CrashStage, definition: Definition, input: InputOf<Definition>, functions: Functions) {
    this.#stage = stage;
    this.#definition = definition;
    this.#input = input;
    this.#functions = functions;
  }

  async report(): Promise<CrashReport> {
    const expected = await this.#trial(null);
    refuseOpen(expected.result);
    refuseDifference(expected, await this.#trial(null));
    const changed: CrashChange[] = [];
    let points = 0;
    for (; ; points++) {
      if (points === maxPoints) throw tooManyPoints(this.#definition.name);
      const { effects, result, failure, point } = await this.#trial(points);
      if (point === null) break;
      const isSame = isDeepStrictEqual(effects, expected.effects);
      const isSameEnd = isDeepStrictEqual(result, expected.result);
      if (isSame && isSameEnd) continue;
      changed.push({
        ...point,
        ...(isSame ? {} : { effects: { expected: expected.effects, found: effects } }),
        ...(isSameEnd ? {} : { result: { expected: expected.result, found: result } }),
        ...(isSameEnd || failure === null ? {} : { failure }),
      });
    }
    const { name, version } = this.#definition;
    return makeReport(`${name}@${version}`, points, changed);
  }

  /** One execution, whose worker dies at the crash point with this number. */
  async #trial(at: number | null): Promise<Trial> {
    const { workers, test } = this.#stage;
    const { reset, effects, drive } = this.#functions;
    await reset();
    const plan = new CrashPlan(at);
    workers.watch(plan);
    // Widened, since the compiler cannot relate a generic definition to the arguments of `start`.
    const definition: AnyDefinition = this.#definition;
    const { runId } = await test.pawl.start(definition, this.#input);
    let result: RunEnd;
    try {
      if (drive !== undefined) await drive(runId);
      await this.#stage.goOn(() => this.#hasEnded(runId));
      result = await this.#endOf(runId);
    } catch (error) {
      if (plan.death === null) throw error;
      result = { status: "open", output: null, error: String(error) };
    } finally {
      workers.watch(null);
    }
    const point = plan.death === null ? null : await this.#pointOf(plan.death);
    const failure = result.status === "failed" ? (await test.pawl.runs.get(runId)).error : null;
    return { effects: structuredClone(await effects()), result, failure, point };
  }

  async #pointOf(death: Death): Promise<CrashPoint> {
    const { test, workers } = this.#stage;
    const { name, version } = await test.pawl.runs.get(death.write.runId);
    const definition = workers.definitions.find((one) => one.name === name && one.version === version);
    return toPoint(death, definition ?? this.#definition);
  }

  async #hasEnded(runId: string): Promise<boolean> {
    return (await this.#stage.test.pawl.runs.get(runId)).completedAt !== null;
  }

  async #endOf(runId: string): Promise<RunEnd> {
    const { pawl } = this.#stage.test;
    const { status, output, error } = await pawl.runs.get(runId);
    if (status !== "running") return { status, output, error: error?.message ?? null };
    return { status: "open", output: null, error: (await pawl.why(runId)).text };
  }
}

/** Counts the crash points, and makes the worker die at one of them. */
class CrashPlan implements WriteWatch {
  /** Where the worker died; null if it has not yet. */
  death: Death | null = null;
  readonly #at: number | null;
  #count = 0;
  /** By run: its current step, or the one it recorded last. */
  readonly #steps = new Map<string, string>();

  constructor(at: number | null) {
    this.#at = at;
  }

  diesAt(write: Write, side: "before" | "after"): boolean {
    // `due` only asks whether a time has come and writes nothing.
    if (write.kind === "entry" && write.entry.change.op === "due") return false;
    const step = this.#steps.get(write.runId) ?? null;
    if (side === "after") this.#follow(write);
    if (this.death !== null || this.#count++ !== this.#at) return false;
    this.death = { write, side, step };
    return true;
  }

  #follow(write: Write): void {
    const { runId } = write;
    if (write.kind === "entry") this.#steps.set(runId, write.entry.name);
    else if ("step" in write.commit.transition && write.commit.transition.step !== null) {
      this.#steps.set(runId, write.commit.transition.step);
    }
  }
}

/** The write at which the worker died, and the step of the run. */
interface Death {
  readonly write: Write;
  readonly side: "before" | "after";
  readonly step: string | null;
}

function toPoint({ write, side, step }: Death, definition: AnyDefinition): CrashPoint {
  const place = { definition: `${definition.name}@${definition.version}`, side };
  if (write.kind === "entry") {
    const { name, change } = write.entry;
    const isWait = change.op === "sleep" || change.op === "wait" || change.op === "invoke";
    return { ...place, after: name, commit: isWait ? "wait" : "step" };
  }
  if (definition.kind === "machine") return { ...place, after: step ?? definition.initial, commit: "step" };
  const isWait = write.commit.transition.kind === "suspend";
  return { ...place, after: step, commit: isWait ? "wait" : "result" };
}

function tooManyPoints(name: string): InvalidOption {
  return new InvalidOption(
    `${name} has more than ${maxPoints} crash points; give t.crashEverywhere an input that needs fewer steps`,
  );
}

function refuseOpen({ status, error }: RunEnd): void {
  if (status !== "open") return;
  throw new InvalidOption(
    `t.crashEverywhere needs a run that ends, but it does not: ${error}. Send the signals it waits for with drive: (runId) => t.pawl.signal(runId, …)`,
  );
}

function refuseDifference(first: Trial, second: Trial): void {
  for (const what of ["effects", "result"] as const) {
    if (isDeepStrictEqual(first[what], second[what])) continue;
    throw new InvalidOption(
      `t.crashEverywhere cannot compare the ${what}: two executions without a crash differ, ${show(first[what], 200)} and then ` +
        `${show(second[what], 200)}. Return only values that are the same in every run, and clear them before each ` +
        "execution: effects: () => mails.splice(0), or reset",
    );
  }
}
