/** `testPawl` on the server of all tests, closed when the test ends. */

import { testPawl, type TestPawl, type TestPawlOptions } from "pawl/testing";
import { inject, onTestFinished } from "vitest";

export async function aTest(options: TestPawlOptions = {}): Promise<TestPawl> {
  const t = await testPawl({ url: inject("databaseUrl"), ...options });
  onTestFinished(() => t.close());
  return t;
}

/** When tests begin. */
export const newYear = new Date("2030-01-01T00:00:00.000Z");

/** A date so much later than the beginning, as text. */
export function later(ms: number): string {
  return new Date(newYear.getTime() + ms).toISOString();
}

export const second = 1_000;
export const hour = 3_600 * second;
export const day = 24 * hour;
