/**
 * The values that workers send, states, results, inputs of children, are JSON texts that the database takes as they are. Here they are
 * measured by what will be stored. A worker has its own limit, which the server does not know; this is the highest that there can be.
 * Used by the routes of the worker protocol.
 */

import { InvalidOption, PayloadTooLarge } from "pawl";
import { isObject, toJson } from "pawl/engine";

const maxBytes = 16 * 1024 * 1024;
/** The members of a transition or a change that are such texts. */
const texts: ReadonlySet<string> = new Set(["state", "result", "error", "input", "output", "match"]);
/** The members that hold such texts. */
const holders: ReadonlySet<string> = new Set(["transition", "change", "children", "child"]);
/** The member of a suspension that holds such texts by names that users choose. */
const byName = "matches";
/** A number whose digits are more than its text; perhaps within a string. */
const exponent = /\de[+-]?\d/i;

/** Refuses a value that is too long when it is stored. `where` names what was sent, in errors. */
export function checkStored(sent: unknown, where: string): void {
  if (Array.isArray(sent)) {
    for (const [index, one] of sent.entries()) checkStored(one, `${where}.${index}`);
  } else if (isObject(sent)) {
    for (const [name, value] of Object.entries(sent)) {
      if (typeof value === "string" && texts.has(name)) checkText(value, `${where}.${name}`);
      else if (holders.has(name)) checkStored(value, `${where}.${name}`);
      else if (name === byName && isObject(value)) {
        for (const [event, match] of Object.entries(value)) {
          if (typeof match === "string") checkText(match, `${where}.${name}.${event}`);
        }
      }
    }
  }
}

function checkText(text: string, where: string): void {
  if (text.length > maxBytes) {
    throw new PayloadTooLarge(`${where} is ${text.length} characters long; the limit is ${maxBytes} bytes`);
  }
  if (!exponent.test(text)) return;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidOption(`${where} must be JSON`);
  }
  toJson(value, where, maxBytes);
}
