/**
 * The rules for names and versions. A bad name is refused at definition time, with the rule in the
 * message. Otherwise it would show up later as a run that no worker claims. Called by the
 * definitions and by every option that takes a name.
 */

import { InvalidOption } from "./errors.js";
import { checkInteger } from "./options.js";
import { show } from "./show.js";

const rules = {
  short: {
    pattern: /^[a-z0-9][a-z0-9_-]{0,47}$/,
    text: "1 to 48 characters of a-z, 0-9, _ and -, the first a letter or digit",
  },
  long: {
    pattern: /^[a-zA-Z0-9._-]{1,128}$/,
    text: "1 to 128 characters of a-z, A-Z, 0-9, ., _ and -",
  },
};

type Kind = "definition" | "queue" | "limit";

/** Names with this prefix are reserved for Pawl itself, for example its deliveries. */
export const reservedPrefix = "pawl-";

/** Checks the name of a definition, a queue or a limit that users define or start. */
export function checkName(kind: Kind, value: unknown): string {
  const name = checkAnyName(kind, value);
  if (!name.startsWith(reservedPrefix)) return name;
  throw new InvalidOption(
    `the name of a ${kind} must not begin with "${reservedPrefix}", which is reserved for Pawl itself; not ${show(name)}`,
  );
}

/** The same, but reserved names are allowed: for reading. */
export function checkAnyName(kind: Kind, value: unknown): string {
  return check(rules.short, kind, value);
}

const deadSuffix = "-dead";

/** Checks the name of a message queue. Its dead-letter queue has the same name with a suffix. */
export function checkMessageQueue(value: unknown): string {
  const name = checkName("queue", value);
  const most = 48 - deadSuffix.length;
  if (name.length <= most || name.endsWith(deadSuffix)) return name;
  throw new InvalidOption(
    `the name of a message queue must have at most ${most} characters, since its dead-letter queue is called <name>${deadSuffix}; not ${show(name)}`,
  );
}

/** Checks the name of a topic. */
export function checkTopic(value: unknown): string {
  return check(rules.long, "topic", value);
}

/** Checks a topic pattern. */
export function checkPattern(value: unknown): string {
  const isPattern =
    typeof value === "string" &&
    value.length <= 128 &&
    /^([a-zA-Z0-9_-]*|\*)(\.([a-zA-Z0-9_-]*|\*))*(\.#)?$|^#$/.test(value) &&
    value !== "";
  if (isPattern) return value;
  throw new InvalidOption(
    "a topic pattern must be 1 to 128 characters: words of a-z, A-Z, 0-9, _ and - separated by dots; " +
      `* stands for any one word, and # at the end for any number of them; not ${show(value)}`,
  );
}

/** Checks the name of a step. */
export function checkStepName(value: unknown): string {
  return check(rules.long, "step", value);
}

/** Checks the name of a tag. */
export function checkTagName(value: unknown): string {
  return check(rules.long, "tag", value);
}

/** Checks the name of a signal. */
export function checkSignalName(value: unknown): string {
  return check(rules.long, "signal", value);
}

/** Checks the name of a schedule. */
export function checkScheduleName(value: unknown): string {
  return check(rules.long, "schedule", value);
}

/** Checks the version of a definition, which is stored as an `integer`. */
export function checkVersion(value: unknown): number {
  return checkInteger(value, "version", { min: 1, max: 2_147_483_647 });
}

function check(rule: (typeof rules)[keyof typeof rules], kind: string, value: unknown): string {
  if (typeof value === "string" && rule.pattern.test(value)) return value;
  throw new InvalidOption(`the name of a ${kind} must be ${rule.text}, not ${show(value)}`);
}
