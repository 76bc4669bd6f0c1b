/**
 * `testPawl`: an engine for one test, with its own database and a clock that stands still until the
 * test moves it. `close` removes all of it. Called by users in their tests.
 */

import { connect } from "../api/connect.js";
import type { AnyDefinition, InputOf } from "../define/definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { Unavailable } from "../values/errors.js";
import type { Pawl } from "../api/pawl.js";
import type { Worker } from "../api/serve.js";
import { crashEverywhere, type CrashOptions } from "./crash-everywhere.js";
import type { CrashReport } from "./crash-report.js";
import {
  checkMoment,
  checkTestPawl,
  checkTestServe,
  type TestPawlOptions,
  type TestServeOptions,
} from "./options.js";
import { type PrivateDatabase, privateDatabase } from "./private-database.js";
import { settle } from "./settle.js";
import { TestClock } from "./test-clock.js";
import { TestWorkers } from "./test-workers.js";

export interface TestPawl extends AsyncDisposable {
  /** The usual client. */
  readonly pawl: Pawl;
  /** The URL of the test's database, which contains Pawl's schema. You may use it too. */
  readonly url: string;
  /**
   * Serves definitions until you close the test or stop the worker. Resolves when the worker
   * claims.
   */
  serve(definitions: readonly AnyDefinition[], options?: TestServeOptions): Promise<Worker>;
  /** The current time of the test's clock. */
  now(): Date;
  /**
   * Advances the clock. Everything that falls due on the way happens in order, with the clock at
   * its time: schedules, sleeps, timeouts, retries, delayed starts, rate limits and retention. Resolves like
   * `drain`.
   */
  advance(duration: Duration): Promise<void>;
  /** Advances the clock to this date. The clock never goes back. */
  at(date: Date): Promise<void>;
  /**
   * Resolves when the test is at rest: every run has ended, waits, is due later, or has no worker.
   * Then nothing happens unless time passes or a signal arrives. Throws `NotDrained` if a step runs
   * for too long, or runs execute steps without end.
   */
  drain(): Promise<void>;
  /**
   * Kills the workers in the middle of their work, as `kill -9` would. Uncommitted work is lost.
   * Their runs become runnable again, with one more crash. New workers take over in the current or
   * the next `drain` or `advance`.
   */
  crash(): Promise<void>;
  /**
   * Executes a definition once for every crash point: before and after each commit, the worker dies
   * and another takes over. Reports the crash points that changed the `effects` or the result.
   */
  crashEverywhere<Definition extends AnyDefinition>(
    definition: Definition,
    input: InputOf<Definition>,
    options: CrashOptions<Definition>,
  ): Promise<CrashReport>;
  /** Stops the workers without waiting for their steps, and drops the database. */
  close(): Promise<void>;
}

/** An engine for one test. */
export async function testPawl(options: TestPawlOptions = {}): Promise<TestPawl> {
  const settings = checkTestPawl(options);
  const database = await privateDatabase(settings.url);
  let test: Test | undefined;
  try {
    // A copied database refuses workers until it is adopted.
    await database.ask("select to_jsonb(a.was_copy) as answer from pawl.adopt() a");
    test = new Test(database, await TestClock.set(database, settings.now), settings);
    if (settings.definitions.length > 0) await test.serve(settings.definitions);
    return test;
  } catch (error) {
    await (test?.close() ?? database.drop());
    throw error;
  }
}

const poolSize = 4;

class Test implements TestPawl {
  readonly pawl: Pawl;
  readonly url: string;
  readonly #database: PrivateDatabase;
  readonly #clock: TestClock;
  readonly #workers: TestWorkers;
  readonly #patienceMs: number;
  readonly #maxSteps: number;
  /** The last operation. Operations run one at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  constructor(
    database: PrivateDatabase,
    clock: TestClock,
    { logger, patienceMs, maxSteps }: ReturnType<typeof checkTestPawl>,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#maxSteps = maxSteps;
    this.url = database.url;
    this.pawl = connect(database.url, { pool: poolSize, logger });
    this.#workers = new TestWorkers(database, logger);
  }

  async serve(definitions: readonly AnyDefinition[], options: TestServeOptions = {}): Promise<Worker> {
    this.#checkOpen();
    return this.#workers.serve(definitions, checkTestServe(options));
  }

  now(): Date {
    return new Date(this.#clock.nowMs);
  }

  async advance(duration: Duration): Promise<void> {
    const ms = toMilliseconds(duration, "the time to advance");
    await this.#inTurn(async () => this.#pass(await this.#clock.later(ms)));
  }

  async at(date: Date): Promise<void> {
    const moment = checkMoment(date, "the date of t.at");
    await this.#inTurn(async () => this.#pass(this.#clock.until(moment)));
  }

  async drain(): Promise<void> {
    await this.#inTurn(() => this.#settle({ clockMoved: false, passBeside: false }));
  }

  async crash(): Promise<void> {
    this.#checkOpen();
    await this.#workers.crash();
  }

  async crashEverywhere<Definition extends AnyDefinition>(
    definition: Definition,
    input: InputOf<Definition>,
    options: CrashOptions<Definition>,
  ): Promise<CrashReport> {
    this.#checkOpen();
    return crashEverywhere(
      { test: this, workers: this.#workers, goOn: (isEnough) => this.#inTurn(() => this.#goOn(isEnough)) },
      definition,
      input,
      options,
    );
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#workers.close();
    await this.pawl.close();
    await this.#database.drop();
  }

  /** Moves from due time to due time, and settles after each. */
  async #pass(to: string): Promise<void> {
    await this.#settle({ clockMoved: false, passBeside: true });
    for (let isThere = false; !isThere;) {
      ({ isThere } = await this.#clock.move(to));
      await this.#settle({ clockMoved: true, passBeside: true });
    }
  }

  /** Moves from due time to due time, until `isEnough`, or nothing is due. */
  async #goOn(isEnough: () => Promise<boolean>): Promise<void> {
    await this.#settle({ clockMoved: false, passBeside: true });
    while (!(await isEnough()) && (await this.#clock.move()).isDue) {
      await this.#settle({ clockMoved: true, passBeside: true });
    }
  }

  #settle(how: Parameters<typeof settle>[1]): Promise<void> {
    this.#checkOpen();
    return settle(
      {
        database: this.#database,
        workers: this.#workers,
        pawl: this.pawl,
        patienceMs: this.#patienceMs,
        maxSteps: this.#maxSteps,
      },
      how,
    );
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  #checkOpen(): void {
    if (this.#closed !== undefined)
      throw new Unavailable("this test was closed, and its database was dropped");
  }
}
