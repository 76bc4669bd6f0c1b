/**
 * Turns requests of workers into what the store takes: reads times and keys, and checks what a
 * schema cannot express, so that an error names the wrong member. Refuses, one by one, children
 * that the caller's token may not start. Used by `register-routes.ts` and `commit-routes.ts`.
 */

import { InvalidOption } from "pawl";
import type { Commit, JournalChange, JournalEntry, NewRun, Transition, Verdict } from "pawl/engine";
import type { Static } from "typebox";
import type { Caller } from "../http/auth.js";
import { RequestError } from "../http/problems.js";
import type { change, commit, entry, newRun, transition } from "./request-schemas.js";

/** Refuses a definition that is listed twice: one statement cannot write its row twice. */
export function checkListedOnce(
  definitions: readonly { readonly name: string; readonly version: number }[],
): void {
  const known = new Map<string, number>();
  for (const [index, { name, version }] of definitions.entries()) {
    const first = known.get(`${name}@${version}`);
    known.set(`${name}@${version}`, first ?? index);
    if (first === undefined) continue;
    const field = `body.definitions.${index}`;
    throw refuse(
      `body.definitions.${index} is ${name}@${version}, and so is body.definitions.${first}: list each version of a definition once`,
      field,
    );
  }
}

/** The commits of a call: at most one transition per run, and one worker in all `next` members. */
export function toCommits(sent: readonly Static<typeof commit>[]): Commit[] {
  const seen = new Set(sent.map(({ runId }) => runId));
  if (seen.size < sent.length)
    throw new InvalidOption(
      "body.commits has more than one transition for the same run: send the second in a later call",
    );
  const workers = new Set(sent.flatMap(({ next }) => (next === null ? [] : [next.workerId])));
  if (workers.size > 1)
    throw new InvalidOption("body.commits names more than one worker in next: send one call per worker");
  return sent.map((one, index) => {
    return { ...one, transition: toTransition(one.transition, `body.commits.${index}.transition`) };
  });
}

export function toEntries(sent: readonly Static<typeof entry>[]): JournalEntry[] {
  return sent.map((one, index) => ({ ...one, change: toChange(one.change, `body.entries.${index}.change`) }));
}

type Refusal = Extract<Verdict, { kind: "failed" }>;

/** The verdict on a commit whose children the caller's token may not start; null: it may. */
export function refuseCommit({ transition: given }: Commit, caller: Caller): Refusal | null {
  return given.kind === "spawn" ? refuseChildren(given.children, caller) : null;
}

/** The same for a journal entry that invokes. */
export function refuseEntry({ change: given }: JournalEntry, caller: Caller): Refusal | null {
  return given.op === "invoke" ? refuseChildren([given.child], caller) : null;
}

function refuseChildren(children: readonly NewRun[], caller: Caller): Refusal | null {
  if (!caller.hasPrefixes) return null;
  for (const { name, queue } of children) {
    // Without a queue it would go to the queue of its definition, which is not known here.
    if (caller.allows({ name, queue: queue ?? "" })) continue;
    const where = queue === null ? " without naming a queue" : ` in the queue "${queue}"`;
    const message = `the token "${caller.tokenName ?? ""}" may not start "${name}"${where}: its prefixes do not allow it`;
    return { kind: "failed", code: "Forbidden", message };
  }
  return null;
}

/** Sends the items that are not refused, and answers for all of them in their order. */
export async function sendAllowed<Item, Answer>(
  items: readonly Item[],
  refuseOne: (item: Item) => Answer | null,
  send: (allowed: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const refused = items.map(refuseOne);
  const allowed = items.filter((_item, index) => refused[index] === null);
  const answers = (allowed.length === 0 ? [] : await send(allowed)).values();
  return refused.map((refusal) => refusal ?? answers.next().value!);
}

/** Throws `RequestError` for a transition that is not valid. */
function toTransition(sent: Static<typeof transition>, where: string): Transition {
  switch (sent.kind) {
    case "next":
      return { ...sent, partitionKey: sent.partitionKey };
    case "await":
      checkJson(sent.match, `${where}.match`);
      return sent;
    case "suspend":
      for (const [name, match] of Object.entries(sent.matches)) checkJson(match, `${where}.matches.${name}`);
      toDate(sent.dueAt, `${where}.dueAt`);
      return sent;
    case "spawn":
      return {
        ...sent,
        children: sent.children.map((child, index) => toNewRun(child, `${where}.children.${index}`)),
      };
    case "keep":
    case "retry":
    case "done":
    case "stop":
      return sent;
  }
}

/** Throws `RequestError` for a change that is not valid. */
function toChange(sent: Static<typeof change>, where: string): JournalChange {
  switch (sent.op) {
    case "sleep":
      if ((sent.delayMs === null) === (sent.at === null))
        throw refuse(`${where} must have either delayMs or at, and null for the other`, where);
      return { ...sent, at: toDate(sent.at, `${where}.at`) };
    case "wait":
      checkJson(sent.match, `${where}.match`);
      return sent;
    case "invoke":
      return { ...sent, child: toNewRun(sent.child, `${where}.child`) };
    case "run":
    case "transaction":
    case "retry":
    case "due":
      return sent;
  }
}

function toNewRun(
  { at, uniqueKeyBase64, trace = null, options = null, ...run }: Static<typeof newRun>,
  where: string,
): NewRun {
  return {
    ...run,
    trace,
    at: toDate(at, `${where}.at`),
    uniqueKey: uniqueKeyBase64 === null ? null : Buffer.from(uniqueKeyBase64, "base64"),
    direct: false,
    options,
  };
}

function toDate(text: string | null, where: string): Date | null {
  if (text === null) return null;
  const read = new Date(text);
  if (!Number.isNaN(read.getTime())) return read;
  throw refuse(`${where} must be a time such as "2030-01-31T12:00:00Z"`, where);
}

/** Checks a text that becomes part of a larger JSON text. */
function checkJson(text: string | null, where: string): void {
  if (text === null) return;
  try {
    JSON.parse(text);
  } catch {
    throw refuse(`${where} must be JSON as text`, where);
  }
}

function refuse(message: string, field: string): RequestError {
  return new RequestError(422, "InvalidOption", message, field);
}
