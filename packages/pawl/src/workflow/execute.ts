/**
 * Executes one claimed run of a workflow: reads its journal, calls the body with a `ctx` whose
 * steps `body.ts` answers, and commits its end: a result, a failure, or a suspension. Called by
 * `worker/execute.ts`.
 */

import { isDefinition, type WorkflowDefinition } from "../define/definition.js";
import { isA } from "../values/error-record.js";
import { ChildFailed, InvalidOption, StepFailed } from "../values/errors.js";
import { toJson } from "../values/json.js";
import { toMilliseconds } from "../values/duration.js";
import { checkName, checkSignalName } from "../values/names.js";
import { checkFunction, checkOptions, isObject } from "../values/options.js";
import { checkRetries } from "../define/retry.js";
import { show } from "../values/show.js";
import type { WorkflowContext, WorkflowSteps } from "../define/workflow-context.js";
import type { JournalChange } from "../store/journal.js";
import { readJournal } from "../store/read-journal.js";
import { Body } from "./body.js";
import { commit, commitFailure } from "../run/commit.js";
import type { Execution } from "../run/execution.js";
import { checkDate, newRun } from "../run/new-run.js";
import { workflowContext } from "../run/step-context.js";
import { decideFailure, type Decision } from "../run/transition.js";
import { decideReturned, readInput } from "../run/input-and-result.js";

export async function executeWorkflow(execution: Execution, definition: WorkflowDefinition): Promise<void> {
  const { runId, claim, control, observed, services } = execution;
  let input: unknown;
  try {
    input = await readInput(execution, definition);
  } catch (error) {
    await commitFailure(execution, decideFailure(null, error));
    return;
  }
  const journal =
    claim.run.journal ?? (await execution.repeatWhileClaimed(() => readJournal(services.store, runId)));
  if (journal === undefined || control.isAborted) return;
  const body = new Body(execution, journal);
  const context = makeContext(execution, body);
  const { span } = observed;
  const run = (): unknown => definition.run(context, input);
  const end = await body.run(span === null ? run : () => span.call(run));
  switch (end.kind) {
    case "aborted":
      return;
    case "suspended":
      await commitFailure(execution, { transition: end.transition, state: null, dueMs: end.dueMs });
      return;
    case "threw":
      // An error of a body that was told to stop says nothing about it: the worker releases the
      // claim.
      if (control.isStopping) control.abort(new Error("the worker is stopping"));
      else await commitFailure(execution, decideError(end.error));
      return;
    case "returned":
      await commitResult(execution, definition, end.value);
  }
}

async function commitResult(
  execution: Execution,
  definition: WorkflowDefinition,
  result: unknown,
): Promise<void> {
  let decision: Decision;
  try {
    decision = await decideReturned(result, definition, execution.services.limits);
  } catch (error) {
    decision = decideFailure(null, error);
  }
  const refused = await commit(execution, decision);
  if (refused !== null) await commitFailure(execution, decideFailure(null, refused));
}

function decideError(error: unknown): Decision {
  const step = isA(error, StepFailed) || isA(error, ChildFailed) ? error.step : null;
  return decideFailure(step, error);
}

function makeContext(execution: Execution, body: Body): WorkflowContext {
  const { maxPayloadBytes: maxBytes } = execution.services.limits;
  const work =
    (kind: "run" | "transaction") =>
    (name: unknown, fn: unknown, options: unknown = {}): Promise<never> =>
      body.step(kind, name, (call, pending) => {
        const of = `step "${call.name}"`;
        const { retry } = checkOptions(options, ["retry"], `the options of ${of}`);
        body.work(call, { fn: checkWork(fn, of), policy: checkRetries(retry, of) }, pending);
      });
  const sleep = (name: unknown, until: unknown): Promise<never> =>
    body.step("sleep", name, (call, pending) => body.wait(call, sleepQuestion(call.name, until), pending));
  const waitForEvent = (name: unknown, options: unknown = {}): Promise<never> =>
    body.step("wait", name, (call, pending) =>
      body.wait(call, waitQuestion(call.name, options, maxBytes), pending),
    );
  const invoke = (name: unknown, target: unknown, input?: unknown, options: unknown = {}): Promise<never> =>
    body.step("invoke", name, (call, pending) => {
      const of = `step "${call.name}"`;
      const what = { what: `the input of ${of}`, of, maxBytes };
      newRun(checkTarget(target), input, options, what).then(
        (child) => {
          const { traceparent: trace } = execution;
          body.wait(call, { op: "invoke", child: { ...child, trace } }, pending);
        },
        (error: unknown) => body.refuse(call, error as Error),
      );
    });
  const step: WorkflowSteps = {
    run: work("run"),
    sleep,
    waitForEvent,
    invoke,
    transaction: work("transaction"),
  };
  return workflowContext(execution, step);
}

function checkWork(fn: unknown, of: string): (...given: unknown[]) => unknown {
  if (!(fn instanceof Promise)) return checkFunction(fn, `the function of ${of}`);
  throw new InvalidOption(`${of} was given a promise and not a function: write \`() =>\` before the call`);
}

function sleepQuestion(name: string, until: unknown): JournalChange {
  const what = `step "${name}": the time to sleep`;
  if (until instanceof Date) return { op: "sleep", delayMs: null, at: checkDate(until, what) };
  if (until !== undefined) return { op: "sleep", delayMs: toMilliseconds(until, what), at: null };
  throw new InvalidOption(
    `${what} is missing; step.sleep takes a name and a time, such as step.sleep("pause", "5m")`,
  );
}

function waitQuestion(name: string, options: unknown, maxBytes: number): JournalChange {
  const of = `step "${name}"`;
  const names = ["event", "match", "timeout"] as const;
  const { event = name, match, timeout } = checkOptions(options, names, `the options of ${of}`);
  if (match !== undefined && !isObject(match)) {
    throw new InvalidOption(`${of}: match must be an object with members of the payload, not ${show(match)}`);
  }
  return {
    op: "wait",
    event: checkSignalName(event),
    match: match === undefined ? null : toJson(match, `${of}: match`, maxBytes).text,
    delayMs: timeout === undefined ? null : toMilliseconds(timeout, `${of}: timeout`),
  };
}

function checkTarget(target: unknown): Parameters<typeof newRun>[0] {
  if (typeof target === "string") return checkName("definition", target);
  if (isDefinition(target)) return target;
  throw new InvalidOption(
    `step.invoke takes a definition made by job(…), machine(…) or workflow(…), or its name, not ${show(target)}`,
  );
}
