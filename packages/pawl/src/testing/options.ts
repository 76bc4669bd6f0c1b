/**
 * The options of `testPawl` and `t.serve`: types, defaults and checks. Called by `test-pawl.ts`.
 */

import type { AnyDefinition } from "../define/definition.js";
import { type Duration, toMilliseconds } from "../values/duration.js";
import { InvalidOption } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";
import { checkDefinitions, checkLogger, type ServeOptions } from "../worker/options.js";
import { checkUrl } from "../store/postgres/database.js";

export interface TestPawlOptions {
  /** Definitions to serve from the beginning, as with `t.serve`. Default: none. */
  readonly definitions?: readonly AnyDefinition[] | undefined;
  /**
   * A PostgreSQL server where the test may create databases. Default: one of
   * `@pawl/local-postgres`.
   */
  readonly url?: string | undefined;
  /** The time at which the test begins. Default: the current time. */
  readonly now?: Date | undefined;
  /** How long, in real time, `drain` waits without progress before it gives up. Default "3s". */
  readonly patience?: Duration | undefined;
  /**
   * How many steps one run may execute before `drain` gives up. All runs together may execute a
   * hundred times as many. Default 1,000.
   */
  readonly maxSteps?: number | undefined;
  /** Default: no logging. */
  readonly logger?: Logger | undefined;
}

/** The options of `serve` that make sense in a test. The test sets database, polling and lease. */
export type TestServeOptions = Pick<
  ServeOptions,
  | "queues"
  | "prefetch"
  | "minDemand"
  | "drainTimeout"
  | "maxStepDuration"
  | "limits"
  | "schedules"
  | "maxPayloadBytes"
  | "recordStacks"
  | "logger"
>;

export interface TestSettings {
  readonly definitions: readonly AnyDefinition[];
  readonly url: string | undefined;
  readonly now: Date | null;
  readonly patienceMs: number;
  readonly maxSteps: number;
  readonly logger: Logger;
}

const defaults = { patience: "3s", maxSteps: 1_000 } as const;
const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const names = ["definitions", "url", "now", "patience", "maxSteps", "logger"] as const;
const serveNames = [
  "queues",
  "prefetch",
  "minDemand",
  "drainTimeout",
  "maxStepDuration",
  "limits",
  "schedules",
  "maxPayloadBytes",
  "recordStacks",
  "logger",
] as const;

export function checkTestPawl(options: unknown): TestSettings {
  const given = checkOptions(options, names, "the options of testPawl");
  const patienceMs = toMilliseconds(given.patience ?? defaults.patience, "patience");
  if (patienceMs < 100) {
    throw new InvalidOption(`patience must be at least 100 ms, not ${show(given.patience)}`);
  }
  return {
    definitions: given.definitions === undefined ? [] : checkDefinitions(given.definitions, "testPawl"),
    url: given.url === undefined ? undefined : checkUrl(given.url),
    now: given.now === undefined ? null : checkMoment(given.now, "now"),
    patienceMs,
    maxSteps: checkInteger(given.maxSteps ?? defaults.maxSteps, "maxSteps", { min: 1, max: 1_000_000_000 }),
    logger: given.logger === undefined ? silent : checkLogger(given.logger),
  };
}

export function checkTestServe(options: unknown): TestServeOptions {
  return checkOptions(options, serveNames, "the options of t.serve") as TestServeOptions;
}

/** Checks that it is a valid date. */
export function checkMoment(given: unknown, what: string): Date {
  if (given instanceof Date && !Number.isNaN(given.getTime())) return given;
  throw new InvalidOption(
    `${what} must be a valid Date, such as new Date("2030-01-01T09:00:00Z"), not ${show(given)}`,
  );
}
