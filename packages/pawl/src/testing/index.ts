/** `pawl/testing`: runs in tests, on a database and with a clock of their own. Re-exports only. */

export type { CrashChange, CrashPoint, CrashReport } from "./crash-report.js";
export type { CrashOptions } from "./crash-everywhere.js";
export { NotDrained } from "./not-drained.js";
export type { TestPawlOptions, TestServeOptions } from "./options.js";
export { type TestPawl, testPawl } from "./test-pawl.js";
