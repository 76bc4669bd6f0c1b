/**
 * The client's transport through a server: each call is a call of its REST API. Starts that happen
 * together share one request. A start with a key travels alone, because the server may have to wait
 * for the key. Only encodes and decodes; the client checks and the server decides. Works wherever
 * there is `fetch`.
 */

import { toBase64 } from "../../values/bytes.js";
import { PawlError } from "../../values/errors.js";
import type { Logger } from "../../values/logger.js";
import { phasesOf, type Status } from "../../values/phase.js";
import { Batcher } from "../../timing/batch.js";
import { Lanes } from "../../timing/slow-lanes.js";
import type {
  ActionFilter,
  CorrelatedSignal,
  EndedRun,
  FindQuery,
  NewSignal,
  RerunAnswer,
  RerunRequest,
  SignalVerdict,
  StoredAction,
} from "../client-store.js";
import type { ClientTransport, RunPageQuery, RunQuery } from "../client-transport.js";
import { isUnreachable } from "../errors.js";
import type { NewRun, StartedRun, StoredLimit } from "../runs.js";
import type { Page, Run, Step, StepPage, Why } from "../views.js";
import type { ServerAddress } from "./address.js";
import { Caller } from "./caller.js";
import { type DatesAsText, readRun, readStep, readWhy } from "./dates.js";
import type { Hints } from "./hints.js";
import { httpActions, httpBulk } from "./http-operations.js";
import { httpPauses } from "./http-pauses.js";
import { httpReports } from "./http-reports.js";
import { httpQueues, httpTopics } from "./http-queues.js";
import { httpSchedules } from "./http-schedules.js";
import { HttpResults } from "./http-results.js";
import { toError } from "./problem.js";
import { limitBody, headerText, runQuery, startBody } from "./requests.js";

/** How many starts with a key are under way at once. */
const keyedLanes = 32;
/** How much longer than the server's own wait an answer may take. */
const graceMs = 15_000;

export interface HttpTransportOptions {
  readonly address: ServerAddress;
  readonly hints: Hints;
  readonly logger: Logger;
  /** Makes runs part of the caller's trace, if there is a tracing library. */
  readonly trace?: <Answer>(
    runs: readonly NewRun[],
    send: (runs: readonly NewRun[]) => Promise<Answer>,
  ) => Promise<Answer>;
}

interface SentStart {
  readonly runId: string;
  readonly created: boolean;
  readonly status: Status;
  readonly served?: false;
  readonly nearest?: string;
}

interface SentEnd {
  readonly runId: string;
  readonly status: Status | null;
  readonly output: unknown;
  readonly error: unknown;
}

export class HttpTransport implements ClientTransport {
  readonly queues: ClientTransport["queues"];
  readonly topics: ClientTransport["topics"];
  readonly bulk: ClientTransport["bulk"];
  readonly pauses: ClientTransport["pauses"];
  readonly schedules: ClientTransport["schedules"];
  readonly reports: ClientTransport["reports"];
  readonly #caller: Caller;
  readonly #hints: Hints;
  readonly #trace: NonNullable<HttpTransportOptions["trace"]>;
  readonly #results: HttpResults;
  readonly #starts: Batcher<NewRun, StartedRun | PawlError>;
  readonly #keyed = new Lanes(keyedLanes);

  constructor({ address, hints, logger, trace = (runs, send) => send(runs) }: HttpTransportOptions) {
    this.#caller = new Caller(address);
    this.#hints = hints;
    this.#trace = trace;
    this.queues = httpQueues(this.#caller);
    this.topics = httpTopics(this.#caller);
    this.bulk = httpBulk(this.#caller);
    this.pauses = httpPauses(this.#caller);
    this.schedules = httpSchedules(this.#caller);
    this.reports = httpReports(this.#caller);
    this.#results = new HttpResults((...asked) => this.#ended(...asked), hints, logger);
    this.#starts = new Batcher({
      send: (runs) => this.#startEach(runs),
      sizeOf: (run) => run.input.length,
      isOutage: isUnreachable,
      isBusy: () => false,
    });
  }

  start(run: NewRun): Promise<StartedRun> {
    return this.#trace([run], async ([traced]) => {
      if (run.uniqueKey !== null || run.idempotencyKey !== null || run.options?.debounce !== undefined) {
        return this.#keyed.run(() => this.#startOne(traced!));
      }
      const started = await this.#starts.add(traced!);
      if (started instanceof PawlError) throw started;
      return started;
    });
  }

  startMany(runs: readonly NewRun[]): Promise<StartedRun[]> {
    return this.#trace(runs, async (traced) => {
      const { runs: started } = await this.#startBatch<SentStart>(traced, { atomic: true });
      return started.map((one, index) => toStarted(one, traced[index]!));
    });
  }

  async signal({ runId, name, payload, dedupKey }: NewSignal): Promise<SignalVerdict> {
    const { delivered } = await this.#caller.call<{ delivered: boolean }>(
      "POST",
      `/v1/runs/${runId}/signals/${encodeURIComponent(name)}`,
      {
        body: JSON.parse(payload) as unknown,
        // The dedup key makes a second delivery harmless.
        repeatable: dedupKey !== null,
        headers: dedupKey === null ? {} : { "idempotency-key": headerText(dedupKey) },
      },
    );
    if (delivered) this.#hints.delivered(runId);
    return delivered ? "delivered" : "duplicate";
  }

  async signalCorrelated(signal: CorrelatedSignal): ReturnType<ClientTransport["signalCorrelated"]> {
    const { correlationKey, definition, name, payload, dedupKey } = signal;
    const answer = await this.#caller.call<Record<"delivered" | "duplicate" | "full", string[]>>(
      "POST",
      `/v1/signals/${encodeURIComponent(name)}`,
      {
        query: { correlationKey, name: definition },
        body: JSON.parse(payload) as unknown,
        // The dedup key makes a second delivery harmless.
        repeatable: dedupKey !== null,
        headers: dedupKey === null ? {} : { "idempotency-key": headerText(dedupKey) },
      },
    );
    for (const runId of answer.delivered) this.#hints.delivered(runId);
    return (["delivered", "duplicate", "full"] as const).flatMap((verdict) =>
      answer[verdict].map((runId) => ({ runId, verdict })),
    );
  }

  async cancel(
    runId: string,
    { reason, cascade }: { reason: string | null; cascade: boolean },
  ): ReturnType<ClientTransport["cancel"]> {
    const query = { reason, cascade };
    const { cancelled } = await this.#caller.call<{ cancelled: number }>("DELETE", `/v1/runs/${runId}`, {
      query,
    });
    if (cancelled > 0) this.#hints.cancel(runId, reason ?? undefined);
    return { verdict: cancelled > 0 ? "cancelled" : "already", phase: "cancelled", cancelled };
  }

  async rerun(runId: string, request: RerunRequest): Promise<RerunAnswer> {
    const { from, input, state, version, idempotencyKey: key } = request;
    const given = (text: string | null): unknown => (text === null ? undefined : JSON.parse(text));
    const rerun = await this.#caller.call<{ runId: string; created: boolean }>(
      "POST",
      `/v1/runs/${runId}/rerun`,
      {
        body: {
          from: from ?? undefined,
          input: given(input),
          state: given(state),
          version: version ?? undefined,
        },
        // The key makes a second request harmless.
        repeatable: key !== null,
        headers: key === null ? {} : { "idempotency-key": headerText(key) },
      },
    );
    return { kind: "rerun", ...rerun };
  }

  async get(runId: string): Promise<Run> {
    return readRun(await this.#caller.call<DatesAsText<Run>>("GET", `/v1/runs/${runId}`));
  }

  async find({ uniqueKey, ...query }: FindQuery): Promise<Run[]> {
    const uniqueKeyBase64 = uniqueKey && toBase64(uniqueKey);
    const { runs } = await this.#caller.call<{ runs: DatesAsText<Run>[] }>("GET", "/v1/runs/find", {
      query: { ...query, uniqueKeyBase64 },
    });
    return runs.map(readRun);
  }

  async list(query: RunPageQuery): Promise<Page> {
    const page = await this.#caller.call<{ runs: DatesAsText<Run>[]; cursor: string | null }>(
      "GET",
      "/v1/runs",
      { query: { ...runQuery(query), cursor: query.cursor, limit: query.limit } },
    );
    return { runs: page.runs.map(readRun), cursor: page.cursor };
  }

  async count(query: RunQuery): Promise<number> {
    const answer = await this.#caller.call<{ count: number }>("GET", "/v1/runs/count", {
      query: runQuery(query),
    });
    return answer.count;
  }

  async steps(runId: string, cursor: string | undefined): Promise<StepPage> {
    const page = await this.#caller.call<{ steps: DatesAsText<Step>[]; cursor: string | null }>(
      "GET",
      `/v1/runs/${runId}/steps`,
      { query: { cursor } },
    );
    return { steps: page.steps.map(readStep), cursor: page.cursor };
  }

  async why(runId: string): Promise<Why> {
    return readWhy(await this.#caller.call<DatesAsText<Why>>("GET", `/v1/runs/${runId}/why`));
  }

  result(runId: string, timeoutMs: number | null): Promise<EndedRun | null> {
    return this.#results.wait(runId, timeoutMs);
  }

  actions(filter: ActionFilter): Promise<StoredAction[]> {
    return httpActions(this.#caller, filter);
  }

  async limits(): Promise<StoredLimit[]> {
    return (await this.#caller.call<{ limits: StoredLimit[] }>("GET", "/v1/limits")).limits;
  }

  async setLimit({ name, ...limit }: StoredLimit): Promise<void> {
    await this.#caller.call("PUT", `/v1/limits/${name}`, { body: limitBody(limit) });
  }

  async close(reason: Error): Promise<void> {
    this.#results.close(reason);
  }

  async #startOne(run: NewRun): Promise<StartedRun> {
    const { name, ...body } = startBody(run);
    const started = await this.#caller.call<SentStart>("POST", `/v1/workflows/${name}/runs`, {
      body,
      repeatable: run.idempotencyKey !== null,
    });
    return toStarted(started, run);
  }

  /** Each by itself: the started run, or its error. */
  async #startEach(runs: readonly NewRun[]): Promise<(StartedRun | PawlError)[]> {
    type Answer = SentStart | { error: { status?: number } };
    const { runs: started } = await this.#startBatch<Answer>(runs, { atomic: false });
    return started.map((one, index) =>
      "error" in one
        ? toError(one.error.status ?? 500, one.error, "the server")
        : toStarted(one, runs[index]!),
    );
  }

  #startBatch<Answer>(runs: readonly NewRun[], { atomic }: { atomic: boolean }): Promise<{ runs: Answer[] }> {
    return this.#caller.call("POST", "/v1/runs/batch", { body: { runs: runs.map(startBody), atomic } });
  }

  /** The runs among these that have ended or do not exist; none once the time has passed. */
  async #ended(runIds: readonly string[], waitSeconds: number, signal?: AbortSignal): Promise<EndedRun[]> {
    const { runs } = await this.#caller.call<{ runs: SentEnd[] }>("POST", "/v1/runs/ended", {
      body: { runIds, waitSeconds },
      timeoutMs: waitSeconds * 1_000 + graceMs,
      repeatable: true,
      tries: 1,
      ...(signal === undefined ? {} : { signal }),
    });
    return runs.map(toEnded);
  }
}

/** For a server every start is one by name: here it is known whether this was. */
function toStarted({ runId, created, status, served, nearest }: SentStart, { kind }: NewRun): StartedRun {
  const started = { runId, created, phase: phasesOf[status][0]!, conflict: null };
  return served === false && kind === null
    ? { ...started, unregistered: { nearest: nearest ?? null } }
    : started;
}

function toEnded({ runId, status, output, error }: SentEnd): EndedRun {
  return {
    runId,
    phase: status === null ? null : (phasesOf[status][0] as EndedRun["phase"]),
    result: output === null ? null : JSON.stringify(output),
    error: error === null ? null : JSON.stringify(error),
  };
}
