/** A start as it is asked for over REST, turned into a run for the store: checked by the library like any other start. */

import { InvalidOption } from "pawl";
import { checkTraceparent, newRun, type NewRun } from "pawl/engine";
import type { Static } from "typebox";
import type { startSchema } from "../http/schemas.js";

export type StartBody = Static<typeof startSchema>;

const dayMs = 86_400_000;

export interface StartContext {
  readonly maxBytes: number;
  /** The header `idempotency-key`. */
  readonly headerKey?: string | undefined;
  /** The header `traceparent`; ignored if it is none. */
  readonly headerTrace?: string | string[] | undefined;
  /** What to call it in errors. */
  readonly of?: string;
  readonly what?: string;
}

export async function toNewRun(name: string, body: StartBody, context: StartContext): Promise<NewRun> {
  const { input, kind, delaySeconds, retentionDays, uniqueKeyBase64, traceparent, ...options } = body;
  const { maxBytes, headerKey, headerTrace, of = "start", what = "input" } = context;
  const given = {
    ...options,
    ...alternative("delay", body.delay, "delaySeconds", delaySeconds && delaySeconds * 1_000),
    ...alternative("retention", body.retention, "retentionDays", retentionDays && retentionDays * dayMs),
    ...alternative(
      "uniqueKey",
      body.uniqueKey,
      "uniqueKeyBase64",
      uniqueKeyBase64 && bytesOf(uniqueKeyBase64),
    ),
    ...alternative("idempotencyKey", body.idempotencyKey, "the header idempotency-key", headerKey),
  };
  const run = await newRun(name, input, given, { maxBytes, of, what, kind });
  return { ...run, trace: traceparent ?? checkTraceparent(headerTrace) };
}

/** The option in its other form, if that is given; both at once only if they say the same. */
function alternative(name: string, given: unknown, otherName: string, other: unknown): object {
  if (other === undefined) return {};
  if (given === undefined || given === other) return { [name]: other };
  throw new InvalidOption(`give ${name} or ${otherName}, not both`);
}

function bytesOf(text: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "")) return bytes;
  throw new InvalidOption("uniqueKeyBase64 must be base64, with + and /");
}
