/**
 * The schemas that routes of all areas share. Requests are checked against schemas, and the OpenAPI
 * document is made of them. Answers have the types of the library; their dates become texts when
 * sent.
 */

import type { ErrorRecord, Json } from "pawl";
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

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
export const date = Type.Unsafe<Date>({ type: "string", format: "date-time" });
export const json = (description: string) => Type.Unsafe<Json>({ description });
export const oneOf = <Word extends string>(words: readonly Word[]) =>
  Type.Unsafe<Word>({ type: "string", enum: [...words] });

export const problemSchema = Type.Unsafe<Problem>(
  Type.Object(
    {
      type: Type.String({ description: "urn:pawl:error: and the code" }),
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String({ description: "What happened, what was given, and what to do" }),
      code: Type.String({ description: "The code of the library's error, or one of the server's own" }),
      instance: Type.String({ description: "The id of the request, as in the header x-request-id" }),
      field: Type.Optional(Type.String({ description: "The part of the request that is wrong" })),
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
      step: Type.Optional(Type.String({ description: "The step that failed" })),
      stack: Type.Optional(
        nullable(
          Type.String({
            description: "The frames of user code, at most 8 KiB together with those of causes",
          }),
        ),
      ),
      cause: Type.Optional(Type.Unknown({ description: "Another ErrorRecord" })),
    },
    { title: "ErrorRecord" },
  ),
);

const stepNames = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));
/** What the code of a definition declares. */
export const declaredSchema = strict(
  {
    initial: Type.Optional(Type.String({ description: "The first step of a machine" })),
    steps: stepNames("All steps"),
    transitions: Type.Optional(
      Type.Array(
        strict({
          from: Type.String(),
          to: Type.String(),
          by: oneOf(["next", "retry", "awaitSignal", "spawn"] as const),
          signals: Type.Optional(Type.Array(Type.String())),
        }),
        { description: "The steps that the code of a step names" },
      ),
    ),
    ends: Type.Optional(
      Type.Array(strict({ from: Type.String(), by: oneOf(["done", "stop"] as const) }), {
        description: "The steps that end the run",
      }),
    ),
    onError: stepNames("Where the handler of errors continues"),
  },
  { title: "Declared", description: "The graph of a machine; nothing for jobs and workflows" },
);

/** Of an answer: where the next page begins. */
export const nextCursor = nullable(Type.String({ description: "For the next page; null at the end" }));
/** Of a request: the page to read. */
export const pageCursor = Type.Optional(
  Type.String({ description: "The cursor that the previous page returned" }),
);

export const waitSeconds = Type.Optional(
  Type.Number({
    minimum: 0,
    maximum: 30,
    description: "Wait up to this long for an answer",
  }),
);

export const idempotencyHeader = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({ description: "A second request with the same key does nothing again" }),
  ),
});
