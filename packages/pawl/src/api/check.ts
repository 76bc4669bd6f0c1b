/**
 * `pawl.check(definitions)`: would the runs that are under way go on with this code? Looks at every open run of these names and lists
 * those that would break. Nothing is written, and no function of any step is called; the code of workflows between their steps
 * does run. Called by users before a deployment.
 */

import type { AnyDefinition, MachineDefinition, WorkflowDefinition } from "../define/definition.js";
import { describeError } from "../values/error-record.js";
import { ChildFailed, NondeterministicWorkflow, StepFailed } from "../values/errors.js";
import { fromJson } from "../values/json.js";
import type { Logger } from "../values/logger.js";
import { phasesOf } from "../values/phase.js";
import { parse, type Schema } from "../define/schema.js";
import type { WorkflowContext } from "../define/workflow-context.js";
import { replay } from "../workflow/replay.js";
import type { StoredStep } from "../store/journal.js";
import { readJournal } from "../store/read-journal.js";
import type { ClientStore, RunFilter, StoredRun } from "../store/store.js";

/** A run that would not go on. */
export interface BrokenRun {
  readonly runId: string;
  readonly name: string;
  readonly version: number;
  readonly reason:
    /** None of the definitions has its version. */
    | "missing_definition"
    /** It is at a step, or has recorded one, that the definition does not have. */
    | "missing_step"
    /** A recorded step is called as something else. */
    | "changed_step"
    /** The schema of the definition refuses its input or state. */
    | "invalid_input"
    | "invalid_state"
    /** The body throws on its way through the recorded steps. */
    | "throws"
    /** The body waits, between its recorded steps, for something that did not come within 5 s. */
    | "stalled";
  readonly text: string;
}

export interface Checked {
  /** How many open runs were looked at. */
  readonly runs: number;
  readonly broken: readonly BrokenRun[];
}

type Problem = Pick<BrokenRun, "reason" | "text">;

/** An open run, as far as it is looked at. Values are JSON. */
export type OpenRun = Pick<StoredRun, "runId" | "name" | "version" | "step" | "input" | "state">;

/** Where the runs are. */
export interface CheckSource {
  openRuns(name: string): AsyncIterable<OpenRun>;
  /** What a workflow run has recorded. */
  journal(runId: string): Promise<readonly StoredStep[]>;
}

const pageSize = 100;
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export async function checkRuns(
  source: CheckSource,
  definitions: readonly AnyDefinition[],
): Promise<Checked> {
  const byVersion = new Map(definitions.map((one) => [`${one.name}@${one.version}`, one]));
  const broken: BrokenRun[] = [];
  let runs = 0;
  for (const name of new Set(definitions.map((one) => one.name))) {
    for await (const run of source.openRuns(name)) {
      runs++;
      const problem = await findProblem(source, byVersion.get(`${run.name}@${run.version}`), run);
      if (problem !== null) broken.push({ runId: run.runId, name, version: run.version, ...problem });
    }
  }
  return { runs, broken };
}

/** The open runs of a store. */
export function storedRuns(store: Pick<ClientStore, "list" | "journal">): CheckSource {
  const nothing = {
    version: null,
    queue: null,
    kind: null,
    error: null,
    parentId: null,
    since: null,
    until: null,
    input: null,
  };
  return {
    async *openRuns(name) {
      for (let before: RunFilter["before"] = null; ;) {
        const page = await store.list({
          ...nothing,
          name,
          phases: phasesOf.running,
          before,
          limit: pageSize,
        });
        yield* page.runs;
        if (page.last === null) return;
        before = page.last;
      }
    },
    journal: (runId) => readJournal(store, runId),
  };
}

async function findProblem(
  source: CheckSource,
  definition: AnyDefinition | undefined,
  run: OpenRun,
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
      return (await refusal(definition.input, run.input, "input")) ?? checkWorkflow(source, definition, run);
  }
}

async function refusal(
  schema: Schema | undefined,
  text: string,
  what: "input" | "state",
): Promise<Problem | null> {
  if (schema === undefined) return null;
  try {
    await parse(schema, fromJson(text), what === "input" ? "InvalidInput" : "InvalidState", what);
    return null;
  } catch (error) {
    return { reason: `invalid_${what}`, text: messageOf(error) };
  }
}

async function checkMachine(definition: MachineDefinition, run: OpenRun): Promise<Problem | null> {
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
  source: CheckSource,
  definition: WorkflowDefinition,
  run: OpenRun,
): Promise<Problem | null> {
  const journal = await source.journal(run.runId);
  const { input: schema } = definition;
  const stored = fromJson(run.input);
  const input = schema === undefined ? stored : await parse(schema, stored, "InvalidInput", "input");
  const replayed = await replay(journal, (step) => {
    const { runId } = run;
    const { name, version } = definition;
    const verbs = {
      run: "run",
      sleep: "sleep",
      waitForEvent: "wait",
      invoke: "invoke",
      transaction: "transaction",
    } as const;
    const steps = Object.fromEntries(
      Object.entries(verbs).map(([verb, kind]) => [verb, (called: unknown) => step(kind, called)]),
    );
    const context = { runId, name, version, signal: new AbortController().signal, log: silent, step: steps };
    return definition.run(context as unknown as WorkflowContext, input);
  });
  switch (replayed.kind) {
    case "followed":
      if (replayed.uncalled.length === 0) return null;
      return {
        reason: "missing_step",
        text: `it has recorded ${quoted(replayed.uncalled)}, which the body does not call any more before it goes on`,
      };
    case "threw":
      // What a step has recorded as its failure, and the body lets pass, is how this run was going to end anyway.
      if (replayed.error instanceof StepFailed || replayed.error instanceof ChildFailed) return null;
      return {
        reason: replayed.error instanceof NondeterministicWorkflow ? "changed_step" : "throws",
        text: messageOf(replayed.error),
      };
    case "stalled":
      return { reason: "stalled", text: "the body did not come to its next step within 5 s" };
  }
}

const messageOf = (error: unknown): string => describeError(error).message;

function quoted(names: readonly string[]): string {
  const first = names.slice(0, 5).map((name) => `"${name}"`);
  return first.join(", ") + (names.length > first.length ? ` and ${names.length - first.length} more` : "");
}
