import { describe, expect, test } from "vitest";

import * as errors from "../../dist/values/errors.js";

const {
  PawlError,
  DeadlineExceeded: _deadline,
  RunFailed,
  RunCancelled,
  StepFailed,
  ChildFailed,
  InvalidDelivery,
  NonRetryable,
  NotSerializable,
  WorkflowVersionMismatch,
  ...plain
} = errors;

describe("every error", () => {
  for (const [name, PlainError] of Object.entries(plain)) {
    test(`${name} has its name as its code, and in the first line of its stack`, () => {
      const cause = new Error("before");
      const error = new PlainError("what happened", { cause });
      expect(error).toBeInstanceOf(PawlError);
      expect(error).toMatchObject({ name, code: name, message: "what happened", cause });
      expect(error.stack).toMatch(new RegExp(`^${name}: what happened`));
      expect(String(error)).toBe(`${name}: what happened`);
    });
  }

  test("is found by instanceof and is not another", () => {
    expect(new errors.RunEnded("")).not.toBeInstanceOf(errors.RunNotFound);
  });
});

test("InvalidDelivery says why", () => {
  const error = new InvalidDelivery("WrongTime", "too old");
  expect(error).toMatchObject({ name: "InvalidDelivery", code: "InvalidDelivery", reason: "WrongTime" });
});

test("WorkflowVersionMismatch carries the version that is served and the one it got", () => {
  const error = new WorkflowVersionMismatch("what happened", { expected: 2, got: 1 });
  expect(error).toBeInstanceOf(PawlError);
  expect(error).toMatchObject({ name: "WorkflowVersionMismatch", expected: 2, got: 1 });
  expect(error.code).toBe("WorkflowVersionMismatch");
});

test("RunFailed carries the run and its recorded error", () => {
  const record = { name: "TypeError", message: "no card", step: "charge" };
  const error = new RunFailed("42", record);
  expect(error).toMatchObject({ name: "RunFailed", code: "RunFailed", runId: "42", error: record });
  expect(error.message).toBe(`run 42 failed at step "charge": no card`);
});

test("StepFailed and ChildFailed carry the step and the recorded error, which is their cause too", () => {
  const record = { name: "TypeError", message: "no card" };
  const step = new StepFailed("charge", record);
  expect(step).toMatchObject({
    name: "StepFailed",
    code: "StepFailed",
    step: "charge",
    error: record,
    cause: record,
  });
  expect(step.message).toBe('step "charge" failed: no card');
  const child = new ChildFailed("ship", "42", "run 42 failed: no card", record);
  expect(child).toMatchObject({
    code: "ChildFailed",
    step: "ship",
    runId: "42",
    error: record,
    cause: record,
  });
  expect(child.message).toBe('step "ship": run 42 failed: no card');
});

test("RunCancelled carries the run and the reason, if there was one", () => {
  expect(new RunCancelled("42", "too late")).toMatchObject({
    code: "RunCancelled",
    runId: "42",
    reason: "too late",
    message: "run 42 was cancelled: too late",
  });
  expect(new RunCancelled("42")).toMatchObject({ reason: undefined, message: "run 42 was cancelled" });
});

test("NonRetryable takes a text, or an error that becomes its cause", () => {
  expect(new NonRetryable("no card")).toMatchObject({ code: "NonRetryable", message: "no card" });
  const cause = new TypeError("no card");
  expect(new NonRetryable(cause)).toMatchObject({ message: "no card", cause });
});

test("NotSerializable carries the path", () => {
  expect(new NotSerializable("state.n", "is NaN")).toMatchObject({
    path: "state.n",
    message: "state.n is NaN",
  });
});
