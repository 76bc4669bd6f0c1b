import { describe, expect, test } from "vitest";

import { job } from "../../dist/define/job.js";
import { machine } from "../../dist/define/machine.js";
import { workflow } from "../../dist/define/workflow.js";
import { untyped } from "./support/untyped.js";

const run = () => null;
const untypedJob = untyped(job);

describe("the option batch", () => {
  test("has a size and a wait, which is a second unless given", () => {
    expect(job({ name: "a", batch: { size: 100 }, run }).batch).toEqual({ size: 100, waitMs: 1_000, run });
    expect(job({ name: "a", batch: { size: 1, wait: 0 }, run }).batch).toEqual({ size: 1, waitMs: 0, run });
    expect(job({ name: "a", run }).batch).toBeNull();
  });

  test.each([
    [{ size: 0 }, /batch\.size must be/],
    [{ size: 10_001 }, /batch\.size must be/],
    [{ size: 1.5 }, /batch\.size must be/],
    [{ wait: "1s" }, /batch\.size must be/],
    [{ size: 10, wait: "2m" }, /batch\.wait must be at most 1 minute, not "2m"/],
    [{ size: 10, wait: "soon" }, /batch\.wait/],
    [{ size: 10, length: 3 }, /length/],
    [100, /the option batch/],
  ])("%j is refused with a reason", (batch, reason) => {
    expect(() => untypedJob({ name: "a", batch, run })).toThrow(reason);
  });

  test("is an option of jobs alone", () => {
    const batch = { size: 10 };
    expect(() => untyped(workflow)({ name: "a", batch, run })).toThrow(/batch/);
    expect(() => untyped(machine)({ name: "a", batch, steps: { start: run } })).toThrow(/batch/);
  });
});
