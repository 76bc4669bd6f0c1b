/**
 * Turns the body of a start over REST into a run for the store. The library checks it like any
 * other start.
 */

import { InvalidOption } from "pawl";
import { check, type Engine, type NewRun } from "pawl/engine";
import type { Static } from "typebox";
import type { startSchema } from "./run-schemas.js";

export type StartBody = Static<typeof startSchema>;

const dayMs = 86_400_000;

export interface StartContext {
  /** The header `idempotency-key`. */
  readonly headerKey?: string | undefined;
  /** The header `traceparent`; ignored if it is not valid. */
  readonly headerTrace?: string | string[] | undefined;
  /** How errors call the start and its input. */
  readonly of?: string;
  readonly what?: string;
}

export async function toNewRun(
  engine: Engine,
  name: string,
  body: StartBody,
  context: StartContext,
): Promise<NewRun> {
  const { input, kind, delaySeconds, retentionDays, uniqueKeyBase64, traceparent, ...options } = body;
  const { headerKey, headerTrace, of = "start", what = "input" } = context;
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
  const run = await engine.newRun(name, input, given, { of, what, kind });
  return { ...run, trace: traceparent ?? check.traceparent(headerTrace) };
}

/** The option in its other form, if that is given. Both at once must say the same. */
function alternative(name: string, given: unknown, otherName: string, other: unknown): object {
  if (other === undefined) return {};
  if (given === undefined || given === other) return { [name]: other };
  throw new InvalidOption(`give ${name} or ${otherName}, not both`);
}

export function bytesOf(text: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "")) return bytes;
  throw new InvalidOption("uniqueKeyBase64 must be base64, with + and /");
}
