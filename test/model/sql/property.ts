/**
 * The property: after every command of a sequence the database has answered as the model does and holds what the model says. A
 * sequence begins on an emptied database. Failures show the commands so far and how to see them again.
 */

import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { type Answer, apply, type Command, emptyModel, type Model } from "../run-model.js";
import { differenceOf } from "./compare.js";
import { type SequenceDatabase, workers } from "./database.js";
import { type Intent, intents } from "./intents.js";
import { perform } from "./perform.js";
import { commandsOf, learn, newSession } from "./session.js";

/** What the sequences have led to, by answer. */
export type Tally = Map<string, number>;

/** Runs a sequence and answers its commands; throws at the first difference. */
export const play = async (
  database: SequenceDatabase,
  sequence: readonly Intent[],
  tally: Tally = new Map(),
): Promise<readonly Command[]> => {
  await database.reset();
  let model: Model = workers.reduce(
    (left, worker) => apply(left, { op: "register", worker }).model,
    emptyModel,
  );
  let session = newSession;
  const done: Command[] = [];
  for (const [index, intent] of sequence.entries()) {
    const commands = commandsOf(session, model, intent);
    if (commands.length === 0) continue;
    done.push(...commands);
    const before = model;
    const expected: Answer[] = [];
    for (const command of commands) {
      const { model: after, answer } = apply(model, command);
      model = after;
      session = learn(session, command, answer);
      expected.push(answer);
      for (const word of wordsOf(answer)) tally.set(word, (tally.get(word) ?? 0) + 1);
    }
    const actual = await perform(database, before, commands, { isPatient: index % 4 > 0 });
    if (!isDeepStrictEqual(actual, expected)) {
      throw new Difference(done, `answer: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
    }
    const stored = await database.look();
    const difference = differenceOf(model, stored);
    if (difference !== null) throw new Difference(done, difference);
  }
  return done;
};

interface Search {
  readonly seed: number;
  readonly sequences: number;
  readonly longestMs: number;
  /** The first sequence found will do, however long it is. */
  readonly isFirstEnough?: boolean;
  /** Played before the random ones. */
  readonly examples?: readonly (readonly Intent[])[];
  readonly tally?: Tally;
}

/** Looks for a sequence after which database and model differ. */
export const search = async (
  database: SequenceDatabase,
  options: Search,
): Promise<{ readonly failure: string | null; readonly sequence: readonly Intent[] }> => {
  const property = fc.asyncProperty(intents, async (sequence) => {
    await play(database, sequence, options.tally);
  });
  const details = await fc.check(property, {
    seed: options.seed,
    numRuns: options.sequences,
    examples: (options.examples ?? []).map((sequence): [Intent[]] => [[...sequence]]),
    endOnFailure: options.isFirstEnough ?? false,
    interruptAfterTimeLimit: options.longestMs,
    markInterruptAsFailure: true,
  });
  if (!details.failed) {
    return { failure: null, sequence: [] };
  }
  const sequence = details.counterexample?.[0] ?? [];
  const again = `PAWL_SEED=${options.seed} PAWL_SEQUENCES=${options.sequences}`;
  const error = details.errorInstance instanceof Error ? details.errorInstance.message : "interrupted";
  return {
    failure: `${again}, sequence ${details.numRuns}\n${error}\n${JSON.stringify(sequence)}`,
    sequence,
  };
};

class Difference extends Error {
  constructor(commands: readonly Command[], what: string) {
    super([...commands.map((command, index) => `${index + 1}. ${JSON.stringify(command)}`), what].join("\n"));
  }
}

const wordsOf = (answer: Answer): readonly string[] => {
  switch (answer.op) {
    case "claim":
      return answer.runs.length === 0
        ? ["claim: nothing"]
        : answer.runs.flatMap(({ timedOut, awaited, children }) => [
            "claim: claimed",
            ...(timedOut ? ["claim: timed out"] : []),
            ...(awaited.length > 0 ? ["claim: awaited"] : []),
            ...(children.length > 0 ? ["claim: children"] : []),
          ]);
    case "commit":
      return [
        `commit: ${answer.verdict}`,
        ...(answer.handed === undefined ? [] : ["commit: handed over"]),
        ...(answer.inboxSeq === undefined ? [] : ["commit: fresh"]),
      ];
    case "signal":
    case "cancel":
      return [`${answer.op}: ${answer.verdict}`];
    case "release":
      return [answer.isReleased ? "release: released" : "release: nothing"];
    case "reap":
      return [answer.reaped > 0 ? "reap: reaped" : "reap: nothing"];
    case "sweep":
      return [answer.swept.length > 0 ? "sweep: swept" : "sweep: nothing"];
    case "beat":
      return [answer.isAlive ? "beat: alive" : "beat: lapsed"];
    case "start":
    case "register":
    case "lapse":
    case "repair":
    case "advance":
      return [answer.op];
  }
};
