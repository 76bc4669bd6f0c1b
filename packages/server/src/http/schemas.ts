/**
 * What goes over the wire, as schemas: requests are checked against them, and the OpenAPI document is made of them. Answers have the
 * types of the library, whose dates are texts once they are sent.
 */

import type {
  ErrorRecord,
  Json,
  Limit,
  Phase,
  RateLimit,
  Run,
  Started,
  Status,
  Step,
  StepKind,
  Why,
} from "pawl";
import { Type, type TObject, type TProperties, type TSchema } from "typebox";
import type { Problem } from "./problems.js";

/** An object with these members and no others. */
export function strict<Properties extends TProperties>(
  properties: Properties,
  options: { readonly title?: string; readonly description?: string } = {},
): TObject<Properties> {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** The answers of a route: these, and problem documents. */
export function answers<Schemas extends Readonly<Record<number, TSchema>>>(schemas: Schemas): Schemas {
  return { ...schemas, "4xx": problemAnswer, "5xx": problemAnswer };
}

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const date = Type.Unsafe<Date>({ type: "string", format: "date-time" });
const json = (description: string) => Type.Unsafe<Json>({ description });
const oneOf = <Word extends string>(words: readonly Word[]) =>
  Type.Unsafe<Word>({ type: "string", enum: [...words] });

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

const problemSchema = Type.Unsafe<Problem>(
  Type.Object(
    {
      type: Type.String({ description: "urn:pawl:error: and the code" }),
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String({ description: "What was given, what is allowed, what to do" }),
      code: Type.String({ description: "The code of the library's error, or one of the server's own" }),
      instance: Type.String({ description: "The id of the request, as in the header x-request-id" }),
      field: Type.Optional(Type.String({ description: "What of the request is wrong" })),
      runId: Type.Optional(Type.String()),
      error: Type.Optional(Type.Unknown()),
      reason: Type.Optional(Type.String()),
      path: Type.Optional(Type.String()),
      expected: Type.Optional(Type.Integer()),
      got: Type.Optional(Type.Integer()),
    },
    { title: "Problem" },
  ),
);
const problemAnswer = {
  description: "A problem document (RFC 9457)",
  content: { "application/problem+json": { schema: problemSchema } },
};

export const errorRecord = Type.Unsafe<ErrorRecord>(
  Type.Object(
    {
      name: Type.String(),
      message: Type.String(),
      code: Type.Optional(Type.String()),
      step: Type.Optional(Type.String()),
      cause: Type.Optional(Type.Unknown()),
    },
    { title: "ErrorRecord" },
  ),
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
      input: json("What it was started with"),
      state: json("Of a machine: its state"),
      output: json("What it has returned"),
      error: nullable(errorRecord),
      parentId: nullable(Type.String()),
      idempotencyKey: nullable(Type.String()),
      startedAt: date,
      completedAt: nullable(date),
      eligibleAt: nullable(date),
      expiresAt: nullable(date),
    },
    { title: "Run" },
  ),
);

export const pageSchema = strict(
  {
    runs: Type.Array(runSchema),
    cursor: nullable(Type.String({ description: "For the next page; null at the end" })),
  },
  { description: "A page of runs, newest first" },
);

export const startedSchema = Type.Unsafe<Started>(
  strict(
    {
      runId: Type.String(),
      created: Type.Boolean({ description: "False: a key was taken, and this is the run that holds it" }),
      status: oneOf(statuses),
    },
    { title: "Started" },
  ),
);

export const batchSchema = strict(
  { runs: Type.Array(Type.Union([startedSchema, strict({ error: problemSchema })])) },
  { description: "In the order of the request" },
);

export const endedSchema = strict(
  {
    runs: Type.Array(
      strict({
        runId: Type.String(),
        status: nullable(oneOf(["completed", "failed", "cancelled"] as const)),
        output: json("What it has returned"),
        error: nullable(errorRecord),
      }),
    ),
    more: Type.Boolean({ description: "Others have ended too: ask again for the rest" }),
  },
  { description: "Those that have ended, or do not exist (status null)" },
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
            output: json("What it has returned"),
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
    cursor: nullable(Type.String({ description: "For the next page; null at the end" })),
  },
  { description: "The journal, in the order in which the body got it, then what is pending" },
);

export const whySchema = Type.Unsafe<Why>(
  Type.Object(
    { runId: Type.String(), phase: oneOf(phases), reason: Type.String(), text: Type.String() },
    {
      title: "Why",
      description: "Beside these, what the reason has to tell: who, until when, what is missing",
    },
  ),
);

export const limitSchema = Type.Unsafe<Limit>(
  strict(
    { name: Type.String(), allowed: Type.Number(), periodMs: Type.Integer(), burst: Type.Number() },
    { title: "Limit" },
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

const duration = (description: string) =>
  Type.Union([Type.Number({ minimum: 0 }), Type.String()], {
    description: `${description}: milliseconds, or a text such as "30s"`,
  });
const key = (description: string) => Type.String({ minLength: 1, maxLength: 512, description });

/** What a run is started with. */
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
  queue: Type.Optional(Type.String({ description: "Default: that of the definition" })),
  priority: Type.Optional(
    Type.Integer({ minimum: -32_768, maximum: 32_767, description: "Lower runs first" }),
  ),
  partitionKey: Type.Optional(key("Runs that share it never execute at the same time")),
  rateLimit: Type.Optional(
    Type.Unsafe<RateLimit>(
      Type.Union([Type.String(), strict({ name: Type.String(), key: Type.String() })], {
        description: "A limit by its name, or one of its buckets",
      }),
    ),
  ),
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  traceparent: Type.Optional(
    Type.String({
      pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
      description: "The W3C trace context that the run belongs to. Default: the header traceparent",
    }),
  ),
  delay: Type.Optional(duration("Not before this much time has passed")),
  delaySeconds: Type.Optional(Type.Number({ minimum: 0, description: "The same in seconds" })),
  at: Type.Optional(Type.String({ description: "Not before this time, ISO 8601" })),
  uniqueKey: Type.Optional(
    key("While a run with this key is in its scope, another start answers with that one"),
  ),
  uniqueKeyBase64: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_024, description: "The same as bytes" }),
  ),
  uniqueScope: Type.Optional(
    Type.Array(oneOf(phases), { description: "The phases in which the unique key is taken", maxItems: 7 }),
  ),
  idempotencyKey: Type.Optional(key("As the header idempotency-key: the same never starts a second run")),
  retention: Type.Optional(duration("How long the run is kept after its end")),
  retentionDays: Type.Optional(Type.Number({ minimum: 0, description: "The same in days" })),
  step: Type.Optional(Type.String({ description: "Machines: begin at this step" })),
};

export const startSchema = strict(startFields, { title: "Start" });

export const waitSeconds = Type.Optional(
  Type.Number({
    minimum: 0,
    maximum: 30,
    description: "Hold the answer until there is one, up to this long",
  }),
);

export const listQuery = Type.Object(
  {
    version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
    status: Type.Optional(oneOf(statuses)),
    phase: Type.Optional(oneOf(phases)),
    queue: Type.Optional(Type.String()),
    kind: Type.Optional(oneOf(kinds)),
    error: Type.Optional(
      Type.String({ description: "Failed with this code, or this name of an error without one" }),
    ),
    parentId: Type.Optional(Type.String({ description: "Children of this run" })),
    since: Type.Optional(Type.String({ description: "Started at this time or later, ISO 8601" })),
    until: Type.Optional(Type.String({ description: "Started before this time" })),
    cursor: Type.Optional(Type.String({ description: "What the page before gave as cursor" })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "Default 20" })),
  },
  // What begins with `input.`; the rest is refused by the handler.
  { additionalProperties: Type.String() },
);

export const idempotencyHeader = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({ description: "Asking again with the same key does nothing twice" }),
  ),
});

export const runParams = strict({ id: Type.String({ description: "The id of the run" }) });
export const nameParams = strict({ name: Type.String({ description: "The name of the definition" }) });
export const namedRunParams = strict({
  name: Type.String({ description: "The name of the definition" }),
  id: Type.String({ description: "The id of the run" }),
});
