import { describe, expect, it } from "vitest";
import type { Run } from "../src/api/types.js";
import { groupFailures } from "../src/pages/failures.js";

const failed = (runId: string, name: string, code: string | undefined, completedAt: string): Run =>
  ({
    runId,
    name,
    startedAt: completedAt,
    completedAt,
    error: { name: "Error", message: runId, ...(code === undefined ? {} : { code }) },
  }) as Run;

describe("failures", () => {
  it("are grouped by definition and code, the largest group first, with first and last time", () => {
    const groups = groupFailures([
      failed("4", "charge", "Declined", "2026-01-04"),
      failed("3", "mail", undefined, "2026-01-03"),
      failed("2", "mail", undefined, "2026-01-02"),
      failed("1", "charge", "Timeout", "2026-01-01"),
    ]);
    expect(groups).toMatchObject([
      {
        name: "mail",
        code: "Error",
        count: 2,
        firstAt: "2026-01-02",
        lastAt: "2026-01-03",
        message: "3",
        lastRunId: "3",
      },
      { name: "charge", code: "Declined", count: 1 },
      { name: "charge", code: "Timeout", count: 1 },
    ]);
  });
});
