/** Runs, steps and starts as schemas: the requests and answers of the routes about runs. */

import type { ConcurrencyLimit, Phase, RateLimit, Run, Started, Status, Step, StepKind, Why } from "pawl";
import { Type } from "typebox";
import {
  date,
  errorRecord,
  json,
  nextCursor,
  nullable,
  oneOf,
  pageCursor,
  problemSchema,
  strict,
} from "../http/schemas.js";

const statuses: readonly Status[] = ["running", "completed", "failed", "cancelled"];
const phases: readonly Phase[] = [
  "runnable",
  "executing",
  "awaiting_signal",
  "awaiting_children",
  "done",
  "failed",
  "cancelled",
];
const kinds = ["job", "machine", "workflow"] as const;
const stepKinds: readonly StepKind[] = ["run", "sleep", "wait", "invoke", "transaction"];

const pauseSchema = strict(
  {
    scope: oneOf(["run", "queue", "definition"] as const),
    by: Type.String(),
    reason: nullable(Type.String()),
    since: date,
  },
  { title: "Pause" },
);

export const runSchema = Type.Unsafe<Run>(
  strict(
    {
      runId: Type.String(),
      name: Type.String(),
      version: Type.Integer(),
      kind: nullable(oneOf(kinds)),
      status: oneOf(statuses),
      phase: oneOf(phases),
      step: nullable(Type.String()),
      attempt: Type.Integer(),
      queue: Type.String(),
      priority: Type.Integer(),
      input: json("The input of its start"),
      state: json("The state of a machine"),
      output: json("The value that it returned"),
      error: nullable(errorRecord),
      parentId: nullable(Type.String()),
      idempotencyKey: nullable(Type.String()),
      correlationKey: nullable(Type.String()),
      tags: Type.Record(Type.String(), Type.String()),
      schedule: nullable(
        strict(
          { name: Type.String(), at: date },
          { description: "The schedule that started it, and its tick" },
        ),
      ),
      startedAt: date,
      completedAt: nullable(date),
      eligibleAt: nullable(date),
      expiresAt: nullable(date),
      deadlineAt: nullable(date),
      rerunOf: nullable(Type.String({ description: "The run that it repeats" })),
      rerunAs: nullable(Type.String({ description: "The newest run that repeats it" })),
      originRunId: Type.String({
        description: "The first run of its chain of reruns; its own id if it is no rerun",
      }),
      traceId: nullable(
        Type.String({ description: "The OpenTelemetry trace of its starter; null: it had none" }),
      ),
      paused: Type.Union([pauseSchema, Type.Null()], {
        description: "Who paused the run, its queue or its definition; null: it is not paused",
      }),
    },
    { title: "Run" },
  ),
);

export const pageSchema = strict(
  {
    runs: Type.Array(runSchema),
    cursor: nextCursor,
  },
  { title: "RunPage", description: "A page of runs, newest first" },
);

export const startedSchema = Type.Unsafe<Started>(
  strict(
    {
      runId: Type.String(),
      created: Type.Boolean({ description: "False: another run holds the key, and this is that run" }),
      status: oneOf(statuses),
      served: Type.Optional(
        Type.Literal(false, {
          description: "No worker has ever registered this name: perhaps a typo. The run waits for one",
        }),
      ),
      nearest: Type.Optional(
        Type.String({ description: "With served: false, a registered name that is similar" }),
      ),
    },
    { title: "Started" },
  ),
);

export const batchSchema = strict(
  { runs: Type.Array(Type.Union([startedSchema, strict({ error: problemSchema })])) },
  { description: "In the order of the request" },
);

export const rerunFields = {
  from: Type.Optional(
    Type.String({ description: 'The step to begin with, or "start". Default: where the run failed' }),
  ),
  input: Type.Optional(Type.Unknown({ description: "Another input" })),
  state: Type.Optional(Type.Unknown({ description: "Another state, for a machine" })),
  version: Type.Optional(Type.Integer({ description: "Another version of the definition" })),
};

export const rerunSchema = strict(rerunFields, { title: "Rerun" });

export const endedSchema = strict(
  {
    runs: Type.Array(
      strict({
        runId: Type.String(),
        status: nullable(oneOf(["completed", "failed", "cancelled"] as const)),
        output: json("The value that it returned"),
        error: nullable(errorRecord),
      }),
    ),
    more: Type.Boolean({ description: "More runs have ended: call again for the rest" }),
  },
  { description: "The runs that have ended, or do not exist (status null)" },
);

export const stepsSchema = strict(
  {
    steps: Type.Array(
      Type.Unsafe<Step>(
        strict(
          {
            name: Type.String(),
            kind: oneOf(stepKinds),
            status: oneOf(["pending", "completed", "failed"] as const),
            attempt: Type.Integer(),
            output: json("The value that it returned"),
            error: nullable(errorRecord),
            childId: nullable(Type.String()),
            startedAt: date,
            completedAt: nullable(date),
            dueAt: nullable(date),
          },
          { title: "Step" },
        ),
      ),
    ),
    cursor: nextCursor,
  },
  { title: "Steps", description: "The journal in the order of replay, then the pending steps" },
);

export const whySchema = Type.Unsafe<Why>(
  Type.Object(
    { runId: Type.String(), phase: oneOf(phases), reason: Type.String(), text: Type.String() },
    {
      title: "Why",
      description: "Each reason adds members of its own: the holder, a time, what is missing",
    },
  ),
);

export const countsSchema = strict({
  workflows: Type.Array(
    strict({
      name: Type.String(),
      counts: strict({
        running: Type.Integer(),
        completed: Type.Integer(),
        failed: Type.Integer(),
        cancelled: Type.Integer(),
      }),
    }),
  ),
});

export const duration = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.String()], {
    description: `${description}: milliseconds, or a text such as "30s"`,
  });
const key = (description: string) => Type.String({ minLength: 1, maxLength: 512, description });

/** The members of a start. */
export const startFields = {
  input: Type.Optional(json("The input, any JSON")),
  version: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_147_483_647,
      description: "Default: the highest with a live worker, else the highest registered",
    }),
  ),
  kind: Type.Optional(oneOf(kinds)),
  queue: Type.Optional(Type.String({ description: "Default: the queue of the definition" })),
  priority: Type.Optional(
    Type.Integer({ minimum: -32_768, maximum: 32_767, description: "Lower runs first" }),
  ),
  partitionKey: Type.Optional(key("Runs that share it execute one at a time, in order")),
  rateLimit: Type.Optional(
    Type.Unsafe<RateLimit>(
      Type.Union([Type.String(), strict({ name: Type.String(), key: Type.String() })], {
        description: "The name of a limit, or one bucket of it",
      }),
    ),
  ),
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  concurrency: Type.Optional(
    Type.Unsafe<ConcurrencyLimit>(
      Type.Union([Type.String(), strict({ name: Type.String(), key: Type.String() })], {
        description: "The name of a concurrency limit, or one key of it",
      }),
    ),
  ),
  traceparent: Type.Optional(
    Type.String({
      pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
      description: "The W3C trace context that the run belongs to. Default: the header traceparent",
    }),
  ),
  delay: Type.Optional(duration("Wait this long before the first attempt")),
  delaySeconds: Type.Optional(Type.Number({ minimum: 0, description: "The same in seconds" })),
  at: Type.Optional(Type.String({ description: "Start at this time or later, ISO 8601" })),
  uniqueKey: Type.Optional(key("While a run holds this key, another start returns that run")),
  uniqueKeyBase64: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_024, description: "The same as bytes" }),
  ),
  uniqueScope: Type.Optional(
    Type.Array(oneOf(phases), {
      description: "The phases in which the run holds its unique key",
      maxItems: 7,
    }),
  ),
  idempotencyKey: Type.Optional(key("As the header idempotency-key: the same key never starts a second run")),
  debounce: Type.Optional(
    strict(
      {
        key: key("Per definition name"),
        delay: duration("The run begins this long after the last start"),
        maxDelay: Type.Optional(duration("But at the latest this long after the first start")),
      },
      { description: "A later start with this key replaces the input of the run that has not begun" },
    ),
  ),
  correlationKey: Type.Optional(
    key("A business key to signal and find the run by; several runs may share it"),
  ),
  tags: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Labels to list runs by: at most 16, values of at most 256 bytes",
    }),
  ),
  timeout: Type.Optional(
    duration("The run fails with DeadlineExceeded if it has not ended this long after it could begin"),
  ),
  retention: Type.Optional(duration("How long to keep the run after its end")),
  retentionDays: Type.Optional(Type.Number({ minimum: 0, description: "The same in days" })),
  step: Type.Optional(Type.String({ description: "Machines: begin at this step" })),
};

export const startSchema = strict(startFields, { title: "Start" });

export const listQuery = Type.Object(
  {
    version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
    status: Type.Optional(oneOf(statuses)),
    phase: Type.Optional(oneOf(phases)),
    queue: Type.Optional(Type.String()),
    kind: Type.Optional(oneOf(kinds)),
    error: Type.Optional(
      Type.String({ description: "Failed with this code, or with this error name if the error has no code" }),
    ),
    parentId: Type.Optional(Type.String({ description: "Children of this run" })),
    paused: Type.Optional(
      Type.Boolean({ description: "true: Paused themselves, not by their queue or definition" }),
    ),
    since: Type.Optional(Type.String({ description: "Started at this time or later, ISO 8601" })),
    until: Type.Optional(Type.String({ description: "Started before this time" })),
    correlationKey: Type.Optional(Type.String({ description: "Runs with this correlation key" })),
    cursor: pageCursor,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 20" })),
  },
  // Names that begin with `input.` or `tag.`; the handler refuses the others.
  { additionalProperties: Type.String() },
);

export const runParams = strict({ id: Type.String({ description: "The id of the run" }) });
export const nameParams = strict({ name: Type.String({ description: "The name of the definition" }) });
export const namedRunParams = strict({
  name: Type.String({ description: "The name of the definition" }),
  id: Type.String({ description: "The id of the run" }),
});
