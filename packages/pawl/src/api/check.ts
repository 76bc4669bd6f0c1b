/**
 * `pawl.check(definitions)`: can the open runs continue with this code? Reads every open run of
 * these names and lists those that would break. Calls no step function, but runs the code of
 * workflows between their steps. Writes nothing. Users call it before a deployment.
 */

import type { AnyDefinition, MachineDefinition, WorkflowDefinition } from "../define/definition.js";
import { describeError } from "../values/error-record.js";
import { ChildFailed, NondeterministicWorkflow, StepFailed } from "../values/errors.js";
import type { Logger } from "../values/logger.js";
import { parse, type Schema } from "../define/schema.js";
import type { WorkflowSteps } from "../define/workflow-context.js";
import { replay } from "../workflow/replay.js";
import type { ClientTransport } from "../store/client-transport.js";
import type { StepKind, StoredStep } from "../store/journal.js";
import { type Run, toPageQuery } from "./runs.js";
import { listSteps, type Step } from "./steps.js";

/** A run that cannot continue. */
export interface BrokenRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly reason:
    /** None of the definitions has its version. */
    | "missing_definition"
    /** It is at a step, or has recorded a step, that the definition does not have. */
    | "missing_step"
    /** The body calls a recorded step as another kind of step. */
    | "changed_step"
    /** The schema of the definition rejects its input or state. */
    | "invalid_input"
    | "invalid_state"
    /** The body throws before it has called all recorded steps. */
    | "throws"
    /** Between its recorded steps, the body waited for more than 5 s. */
    | "stalled";
  readonly text: string;
}

export interface Checked {
  /** How many open runs were checked. */
  readonly runs: number;
  readonly broken: readonly BrokenRun[];
}

type Problem = Pick<BrokenRun, "reason" | "text">;

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** How the runs are read. */
type RunReader = Pick<ClientTransport, "list" | "steps">;

export async function checkRuns(reader: RunReader, definitions: readonly AnyDefinition[]): Promise<Checked> {
  const byVersion = new Map(definitions.map((one) => [`${one.name}@${one.version}`, one]));
  const broken: BrokenRun[] = [];
  let runs = 0;
  for (const name of new Set(definitions.map((one) => one.name))) {
    for await (const run of openRuns(reader, name)) {
      runs++;
      const problem = await findProblem(reader, byVersion.get(`${run.name}@${run.version}`), run);
      if (problem !== null) broken.push({ runId: run.runId, name, version: run.version, ...problem });
    }
  }
  return { runs, broken };
}

async function* openRuns(reader: RunReader, name: string): AsyncIterable<Run> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await reader.list(toPageQuery({ name, status: "running", limit: 100, cursor }));
    yield* page.runs;
    cursor = page.cursor;
  }
}

/** The journal of a workflow run, ordered by name as a worker reads it. */
async function readJournal(reader: RunReader, runId: string): Promise<StoredStep[]> {
  const steps = await listSteps((cursor) => reader.steps(runId, cursor));
  return steps.map(toStored).toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** The steps come in the order of their seq, pending ones last. */
function toStored(step: Step, index: number): StoredStep {
  const { name, kind, status, attempt, childId, dueAt, output, error } = step;
  return {
    name,
    kind,
    seq: status === "pending" ? null : index + 1,
    attempt,
    childId,
    dueMs: null,
    dueAt: dueAt?.toISOString() ?? null,
    output,
    error,
  };
}

async function findProblem(
  reader: RunReader,
  definition: AnyDefinition | undefined,
  run: Run,
): Promise<Problem | null> {
  if (definition === undefined) {
    return { reason: "missing_definition", text: `no definition of ${run.name} has version ${run.version}` };
  }
  switch (definition.kind) {
    case "job":
      return refusal(definition.input, run.input, "input");
    case "machine":
      return checkMachine(definition, run);
    case "workflow":
      return (await refusal(definition.input, run.input, "input")) ?? checkWorkflow(reader, definition, run);
  }
}

async function refusal(
  schema: Schema | undefined,
  value: unknown,
  what: "input" | "state",
): Promise<Problem | null> {
  if (schema === undefined) return null;
  try {
    await parse(schema, value, what === "input" ? "InvalidInput" : "InvalidState", what);
    return null;
  } catch (error) {
    return { reason: `invalid_${what}`, text: messageOf(error) };
  }
}

async function checkMachine(definition: MachineDefinition, run: Run): Promise<Problem | null> {
  const step = run.step ?? definition.initial;
  if (!definition.steps.has(step)) {
    return {
      reason: "missing_step",
      text: `it is at step "${step}"; the steps are ${[...definition.steps.keys()].join(", ")}`,
    };
  }
  return run.state === null
    ? refusal(definition.state, run.input, "input")
    : refusal(definition.state, run.state, "state");
}

async function checkWorkflow(
  reader: RunReader,
  definition: WorkflowDefinition,
  run: Run,
): Promise<Problem | null> {
  const journal = await readJournal(reader, run.runId);
  const { input: schema } = definition;
  const input = schema === undefined ? run.input : await parse(schema, run.input, "InvalidInput", "input");
  const replayed = await replay(journal, (step) => {
    // The body trusts its journal, so nobody checks the types of recorded outputs.
    const answer =
      (kind: StepKind) =>
      (called: unknown, ..._rest: readonly unknown[]): Promise<never> =>
        step(kind, called) as Promise<never>;
    const steps: WorkflowSteps = {
      run: answer("run"),
      sleep: answer("sleep"),
      waitForEvent: answer("wait"),
      invoke: answer("invoke"),
      transaction: answer("transaction"),
    };
    const { runId, originRunId, tags, schedule } = run;
    const { name, version } = definition;
    const { signal } = new AbortController();
    const identity = { runId, originRunId, name, version, tags, schedule };
    return definition.run({ ...identity, signal, log: silent, step: steps }, input);
  });
  switch (replayed.kind) {
    case "followed":
      if (replayed.uncalled.length === 0) return null;
      return {
        reason: "missing_step",
        text: `it has recorded ${quoted(replayed.uncalled)}, which the body no longer calls before it continues`,
      };
    case "threw":
      // The recorded failure of a step, which the body does not catch: the run ends like this
      // anyway.
      if (replayed.error instanceof StepFailed || replayed.error instanceof ChildFailed) return null;
      return {
        reason: replayed.error instanceof NondeterministicWorkflow ? "changed_step" : "throws",
        text: messageOf(replayed.error),
      };
    case "stalled":
      return { reason: "stalled", text: "the body did not reach its next step within 5 s" };
  }
}

const messageOf = (error: unknown): string => describeError(error).message;

function quoted(names: readonly string[]): string {
  const first = names.slice(0, 5).map((name) => `"${name}"`);
  return first.join(", ") + (names.length > first.length ? ` and ${names.length - first.length} more` : "");
}
