/**
 * What the client asks of a server, each a call of its REST API. This file only encodes and decodes; what is checked and what is thrown
 * is the business of `api/http-client.ts` and of the server.
 */

import { toBase64 } from "../../values/bytes.js";
import { NotSupported, type PawlError } from "../../values/errors.js";
import { isObject } from "../../values/options.js";
import { phasesOf, type Status } from "../../values/phase.js";
import { show } from "../../values/show.js";
import type { Cancelled, Limit } from "../../api/pawl.js";
import type { CountOptions, ListOptions, Page, Run } from "../../api/runs.js";
import type { Signalled } from "../../api/send.js";
import { listSteps, type Step } from "../../api/steps.js";
import type { Why } from "../../api/why.js";
import type { EndedRun, NewRun, NewSignal, StartedRun, StoredLimit } from "../store.js";
import type { Caller } from "./caller.js";
import { toError } from "./problem.js";
import { reviveRun, reviveStep, reviveWhy, type SentRun, type SentStep } from "./shapes.js";

interface SentStart {
  readonly runId: string;
  readonly created: boolean;
  readonly status: Status;
}

interface SentEnd {
  readonly runId: string;
  readonly status: Status | null;
  readonly output: unknown;
  readonly error: unknown;
}

/** Beside what a server may wait itself, the way there and back. */
const wayMs = 15_000;

export class HttpClientStore {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** All of them, or none. */
  async startAll(runs: readonly NewRun[]): Promise<StartedRun[]> {
    const { runs: started } = await this.#startBatch<SentStart>(runs, true);
    return started.map(toStarted);
  }

  /** Each by itself: what came of it, or why nothing did. */
  async startEach(runs: readonly NewRun[]): Promise<(StartedRun | PawlError)[]> {
    const { runs: started } = await this.#startBatch<SentStart | { error: { status?: number } }>(runs, false);
    return started.map((one) =>
      "error" in one ? toError(one.error.status ?? 500, one.error, "the server") : toStarted(one),
    );
  }

  /** One run, by a call of its own. */
  async startOne(run: NewRun): Promise<StartedRun> {
    const { name, ...body } = toStart(run);
    const started = await this.#caller.call<SentStart>("POST", `/v1/workflows/${name}/runs`, {
      body,
      repeatable: run.idempotencyKey !== null,
    });
    return toStarted(started);
  }

  signal({ runId, name, payload, dedupKey }: NewSignal): Promise<Signalled> {
    return this.#caller.call("POST", `/v1/runs/${runId}/signals/${encodeURIComponent(name)}`, {
      body: JSON.parse(payload) as unknown,
      // With a dedup key a second delivery is none.
      repeatable: dedupKey !== null,
      headers: dedupKey === null ? {} : { "idempotency-key": headerText(dedupKey) },
    });
  }

  async get(runId: string): Promise<Run> {
    return reviveRun(await this.#caller.call<SentRun>("GET", `/v1/runs/${runId}`));
  }

  async count(options: CountOptions): Promise<number> {
    const query = listQuery(options);
    return (await this.#caller.call<{ count: number }>("GET", "/v1/runs/count", { query })).count;
  }

  async list(options: ListOptions): Promise<Page> {
    const query = listQuery(options);
    const page = await this.#caller.call<{ runs: SentRun[]; cursor: string | null }>("GET", "/v1/runs", {
      query,
    });
    return { runs: page.runs.map(reviveRun), cursor: page.cursor };
  }

  steps(runId: string): Promise<Step[]> {
    return listSteps(async (cursor) => {
      const page = await this.#caller.call<{ steps: SentStep[]; cursor: string | null }>(
        "GET",
        `/v1/runs/${runId}/steps`,
        { query: { cursor } },
      );
      return { steps: page.steps.map(reviveStep), cursor: page.cursor };
    });
  }

  cancel(
    runId: string,
    { reason, cascade }: { reason: string | null; cascade: boolean },
  ): Promise<Cancelled> {
    return this.#caller.call("DELETE", `/v1/runs/${runId}`, { query: { reason, cascade } });
  }

  async why(runId: string): Promise<Why> {
    return reviveWhy(await this.#caller.call("GET", `/v1/runs/${runId}/why`));
  }

  async limits(): Promise<Limit[]> {
    const { limits } = await this.#caller.call<{ limits: Limit[] }>("GET", "/v1/limits");
    return limits;
  }

  async setLimit({ name, allowed, periodMs, burst }: StoredLimit): Promise<void> {
    await this.#caller.call("PUT", `/v1/limits/${name}`, { body: { allowed, period: periodMs, burst } });
  }

  /** Of these runs, those that have ended or do not exist; none once the time has passed without that. */
  async ended(runIds: readonly string[], waitSeconds: number, signal?: AbortSignal): Promise<EndedRun[]> {
    const { runs } = await this.#caller.call<{ runs: SentEnd[] }>("POST", "/v1/runs/ended", {
      body: { runIds, waitSeconds },
      timeoutMs: waitSeconds * 1_000 + wayMs,
      repeatable: true,
      tries: 1,
      ...(signal === undefined ? {} : { signal }),
    });
    return runs.map(toEnded);
  }

  #startBatch<Answer>(runs: readonly NewRun[], atomic: boolean): Promise<{ runs: Answer[] }> {
    return this.#caller.call("POST", "/v1/runs/batch", { body: { runs: runs.map(toStart), atomic } });
  }
}

/** A run as the body of a start has it. What is not given is left out: JSON drops undefined members. */
function listQuery({
  since,
  until,
  input,
  ...rest
}: ListOptions): Record<string, string | number | Date | undefined> {
  const times = { since: since && new Date(since), until: until && new Date(until) };
  return { ...rest, ...times, ...inputQuery(input) };
}

function toStart(run: NewRun): { readonly name: string; readonly [option: string]: unknown } {
  const given = <T>(value: T | null): T | undefined => value ?? undefined;
  const [limit, key] = splitLimit(run.rateLimit);
  return {
    name: run.name,
    version: given(run.version),
    kind: given(run.kind),
    queue: given(run.queue),
    priority: given(run.priority),
    input: JSON.parse(run.input) as unknown,
    step: given(run.step),
    delay: given(run.delayMs),
    at: run.at?.toISOString(),
    retention: given(run.retentionMs),
    idempotencyKey: given(run.idempotencyKey),
    uniqueKeyBase64: run.uniqueKey === null ? undefined : toBase64(run.uniqueKey),
    uniqueScope: given(run.uniqueScope),
    partitionKey: given(run.partitionKey),
    rateLimit: limit === null ? undefined : key === null ? limit : { name: limit, key },
    weight: given(run.weight),
    traceparent: given(run.trace),
  };
}

/** `limit`, or `limit:key`; names of limits have no colon. */
function splitLimit(rateLimit: string | null): [string | null, string | null] {
  const at = rateLimit?.indexOf(":") ?? -1;
  if (rateLimit === null || at === -1) return [rateLimit, null];
  return [rateLimit.slice(0, at), rateLimit.slice(at + 1)];
}

/** The filter of the input, a parameter for each of its members. */
function inputQuery(input: unknown): Record<string, string> {
  if (input === undefined) return {};
  const members = isObject(input) ? Object.entries(input) : null;
  if (members === null || members.some(([name]) => name === "" || name.includes("."))) {
    throw new NotSupported(
      "through a server, runs.list takes as input an object whose members have names without a dot, " +
        `such as { user: { id: 42 } }, not ${show(input)}`,
    );
  }
  return Object.fromEntries(members.map(([name, value]) => [`input.${name}`, JSON.stringify(value)]));
}

function toStarted({ runId, created, status }: SentStart): StartedRun {
  return { runId, created, phase: phasesOf[status][0]!, conflict: null };
}

function toEnded({ runId, status, output, error }: SentEnd): EndedRun {
  return {
    runId,
    phase: status === null ? null : (phasesOf[status][0] as EndedRun["phase"]),
    result: output === null ? null : JSON.stringify(output),
    error: error === null ? null : JSON.stringify(error),
  };
}

/** Headers carry bytes: other texts travel as their UTF-8, escaped. */
function headerText(text: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("utf-8''")
    ? text
    : `utf-8''${encodeURIComponent(text)}`;
}
