/**
 * `testPawl`: an engine for one test, on a database of its own, with a clock that stands still until the test moves it. Everything that is
 * made here is gone after `close`.
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
  /** The ordinary client. */
  readonly pawl: Pawl;
  /** The database of this test, with the schema of Pawl in it. Yours to use too. */
  readonly url: string;
  /** Serves definitions until the test is closed, or the worker stopped. Resolves once it claims. */
  serve(definitions: readonly AnyDefinition[], options?: TestServeOptions): Promise<Worker>;
  /** What time it is in this test. */
  now(): Date;
  /**
   * Lets time pass. Everything that falls due meanwhile happens in the order of its time, with the clock at that time: sleeps, timeouts,
   * retries, delayed starts, rate limits, retention, and what they lead to. Resolves as `drain` does.
   */
  advance(duration: Duration): Promise<void>;
  /** Lets time pass until this date. Time never goes back. */
  at(date: Date): Promise<void>;
  /**
   * Resolves when nothing can move unless time passes or a signal comes: every run has ended, waits, is due later, or nobody serves it.
   * Throws `NotDrained` if something executes for too long, or goes on without end.
   */
  drain(): Promise<void>;
  /**
   * Drops the workers in the middle of what they do, as `kill -9` would. What they have not committed is lost, and their runs are
   * runnable again, with one crash more. New workers take over with the next `drain` or `advance`, or the one that is under way.
   */
  crash(): Promise<void>;
  /**
   * Executes a definition again and again, each time with a worker that dies at another place, before or after something is committed, and
   * tells after which steps that changed what happened (`effects`) or what came out.
   */
  crashEverywhere<Definition extends AnyDefinition>(
    definition: Definition,
    input: InputOf<Definition>,
    options: CrashOptions<Definition>,
  ): Promise<CrashReport>;
  /** Drops the workers and the database. Waits for no step. */
  close(): Promise<void>;
}

/** An engine for one test. */
export async function testPawl(options: TestPawlOptions = {}): Promise<TestPawl> {
  const settings = checkTestPawl(options);
  const database = await privateDatabase(settings.url);
  let test: Test | undefined;
  try {
    // It is a copy of the template only for as long as it takes to make one.
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
  /** The last thing that was asked for: one at a time. */
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

  /** From due time to due time, each with all that follows from it. */
  async #pass(to: string): Promise<void> {
    await this.#settle({ clockMoved: false, passBeside: true });
    for (let isThere = false; !isThere;) {
      ({ isThere } = await this.#clock.move(to));
      await this.#settle({ clockMoved: true, passBeside: true });
    }
  }

  /** As far into the future as there is something due, unless it is enough. */
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
    if (this.#closed !== undefined) throw new Unavailable("this test was closed: its database is gone");
  }
}
