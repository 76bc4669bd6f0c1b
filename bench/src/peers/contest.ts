/**
 * The contest: runs every entry in turn, each with a new database and a new process, and collects
 * the results. A failed entry is noted with its reason, and the others continue.
 */

import { percentile } from "../statistics.js";
import type { BenchServer } from "../server.js";
import { plans } from "./measurements.js";
import { runProgram } from "./program.js";
import { type Figure, summarize, type Summary } from "./ratios.js";
import { show } from "./report.js";
import { type Entry, inTurn, latestBeginMs } from "./schedule.js";
import { type Service, startService } from "./services.js";

export interface ContestRequest {
  readonly server: BenchServer;
  readonly entries: readonly Entry[];
  readonly repetitions: number;
  readonly quick: boolean;
  /** No repetition is begun that would not end within this time, by the length of those before. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
  readonly tell: (line: string) => void;
}

interface Outcome {
  readonly figures: Figure[];
  readonly errors: string[];
}

export async function hold(request: ContestRequest): Promise<{ summaries: Summary[]; repetitions: number }> {
  const { entries, budgetMs, tell } = request;
  const outcomes = new Map<Entry, Outcome>(entries.map((entry) => [entry, { figures: [], errors: [] }]));
  const beginMs = performance.now();
  const elapsedMs = (): number => performance.now() - beginMs;
  let held = 0;
  while (held < request.repetitions && elapsedMs() * (held + 1) <= budgetMs * Math.max(held, 1)) {
    tell(`repetition ${held + 1} of ${request.repetitions}`);
    for (const entry of inTurn(entries, held)) {
      const outcome = outcomes.get(entry)!;
      if (elapsedMs() <= latestBeginMs(entries, entry, held, budgetMs))
        await attempt(request, entry, outcome);
      else if (outcome.figures.length === 0) outcome.errors.push("no time was left");
    }
    held++;
  }
  const summaries = entries.map((entry) => {
    const { figures, errors } = outcomes.get(entry)!;
    return summarize(entry, figures, errors);
  });
  return { summaries, repetitions: held };
}

async function attempt(request: ContestRequest, entry: Entry, outcome: Outcome): Promise<void> {
  const beginMs = performance.now();
  const tell = (what: string): void => {
    const seconds = ((performance.now() - beginMs) / 1_000).toFixed(1);
    request.tell(`  ${describe(entry)}: ${what} (took ${seconds} s in all)`);
  };
  try {
    const figure = await measure(request, entry);
    outcome.figures.push(figure);
    tell(`${show(figure.value)} ${plans[entry.measurement].unit}`);
  } catch (error) {
    request.signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    // The stack is printed, but not written into the results.
    outcome.errors.push(reason.split("\n", 1)[0]!);
    tell(reason);
  }
}

const describe = ({ measurement, contestant, way }: Entry): string =>
  [measurement, contestant.name, way.variant].filter((word) => word !== "").join(" · ");

async function measure({ server, quick, signal }: ContestRequest, entry: Entry): Promise<Figure> {
  const { contestant, measurement, way } = entry;
  const plan = plans[measurement];
  const size = quick ? "quick" : "usual";
  signal.throwIfAborted();
  const database = await server.createDatabase(contestant.name === "pawl" ? "migrated" : "empty");
  let service: Service | undefined;
  try {
    service = await startService(contestant.storage);
    const order = {
      measurement,
      variant: way.variant,
      databaseUrl: database.url,
      serviceUrl: service.url,
      count: Math.ceil(plan[size].count * (way.share ?? 1)),
      warmUp: Math.ceil(plan[size].warmUp * (way.share ?? 1)),
      concurrency: plan.concurrency,
      spreadMs: plan.spreadMs[size],
    };
    const answer = await runProgram(contestant.name, order, plan.longestMs[size], signal);
    if (answer.kind === "rate") return { value: answer.done / answer.seconds, p99: null };
    return { value: percentile(answer.timesMs, 50), p99: percentile(answer.timesMs, 99) };
  } finally {
    await service?.stop();
    await server.dropDatabase(database);
  }
}
