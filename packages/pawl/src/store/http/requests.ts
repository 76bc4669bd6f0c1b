/**
 * Runs, filters and keys as requests of the REST API carry them. Pure. Used by the HTTP transport.
 */

import { toBase64 } from "../../values/bytes.js";
import { NotSupported } from "../../values/errors.js";
import { fromJson } from "../../values/json.js";
import { isObject } from "../../values/options.js";
import { show } from "../../values/show.js";
import type { RunQuery } from "../client-transport.js";
import type { NewRun, StoredLimit } from "../runs.js";

/** A run as the body of a start. JSON drops members that are undefined. */
export function startBody(run: NewRun): { readonly name: string; readonly [option: string]: unknown } {
  const given = <T>(value: T | null): T | undefined => value ?? undefined;
  const { tags, timeoutMs, debounce, correlationKey, concurrency } = run.options ?? {};
  return {
    name: run.name,
    version: given(run.version),
    kind: given(run.kind),
    queue: given(run.queue),
    priority: given(run.priority),
    input: fromJson(run.input),
    step: given(run.step),
    delay: given(run.delayMs),
    at: run.at?.toISOString(),
    retention: given(run.retentionMs),
    idempotencyKey: given(run.idempotencyKey),
    uniqueKeyBase64: run.uniqueKey === null ? undefined : toBase64(run.uniqueKey),
    uniqueScope: given(run.uniqueScope),
    partitionKey: given(run.partitionKey),
    rateLimit: limitOf(run.rateLimit),
    weight: given(run.weight),
    traceparent: given(run.trace),
    tags,
    timeout: timeoutMs,
    debounce: debounce && { key: debounce.key, delay: debounce.delayMs, maxDelay: debounce.maxDelayMs },
    correlationKey,
    concurrency: limitOf(concurrency ?? null),
  };
}

/** `limit` or `limit:key`; names of limits contain no colon. */
function limitOf(limit: string | null): string | { name: string; key: string } | undefined {
  if (limit === null) return undefined;
  const at = limit.indexOf(":");
  return at === -1 ? limit : { name: limit.slice(0, at), key: limit.slice(at + 1) };
}

/** A limit as the body of a request that sets it. */
export function limitBody({ allowed, periodMs, burst, concurrent }: Omit<StoredLimit, "name">): object {
  const rate = allowed === null ? {} : { allowed, period: periodMs, burst };
  return { ...rate, ...(concurrent === null ? {} : { concurrent }) };
}

/** The filters of a listing as query parameters. */
export function runQuery(query: RunQuery): Record<string, string | number | Date | null> {
  const { name, version, status, phase, queue, kind, error, parentId, since, until, input } = query;
  const { correlationKey, tags, paused } = query;
  const filters = {
    name,
    version,
    status,
    phase,
    queue,
    kind,
    error,
    parentId,
    since,
    until,
    correlationKey,
    ...(paused ? { paused: "true" } : {}),
  };
  return {
    ...filters,
    ...(input === null ? {} : inputQuery(fromJson(input))),
    ...Object.fromEntries(Object.entries(tags ?? {}).map(([tag, value]) => [`tag.${tag}`, value])),
  };
}

/** One parameter for each member of the input. */
function inputQuery(input: unknown): Record<string, string> {
  const members = isObject(input) ? Object.entries(input) : null;
  if (members === null || members.some(([name]) => name === "" || name.includes("."))) {
    throw new NotSupported(
      "through a server, the filter input must be an object whose member names contain no dot, " +
        `such as { user: { id: 42 } }, not ${show(input)}`,
    );
  }
  return Object.fromEntries(members.map(([name, value]) => [`input.${name}`, JSON.stringify(value)]));
}

/** Headers carry ASCII: other text travels as UTF-8, escaped. */
export function headerText(text: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("utf-8''")
    ? text
    : `utf-8''${encodeURIComponent(text)}`;
}
