/**
 * Limits the size of values that workers send: states, results, inputs of children. They are JSON
 * texts that the database stores as they are. A worker may have a lower limit, which the server
 * does not know; this is the highest possible one. Used by `commit-routes.ts`.
 */

import { InvalidOption, PayloadTooLarge } from "pawl";
import { values } from "pawl/engine";

const { isObject, toJson } = values;

const maxBytes = 16 * 1024 * 1024;
/** Members of a transition or a change that are JSON texts. */
const texts: ReadonlySet<string> = new Set(["state", "result", "error", "input", "output", "match"]);
/** Members that contain JSON texts. */
const holders: ReadonlySet<string> = new Set(["transition", "change", "children", "child"]);
/** The member of a suspension that contains JSON texts by names that users choose. */
const byName = "matches";
/** A number that is stored with more digits than its text has; it may also be part of a string. */
const exponent = /\de[+-]?\d/i;

/** Refuses a value that is too large to be stored. Errors call it `where`. */
export function checkStoredSizes(sent: unknown, where: string): void {
  if (Array.isArray(sent)) {
    for (const [index, one] of sent.entries()) checkStoredSizes(one, `${where}.${index}`);
  } else if (isObject(sent)) {
    for (const [name, value] of Object.entries(sent)) {
      if (typeof value === "string" && texts.has(name)) checkText(value, `${where}.${name}`);
      else if (holders.has(name)) checkStoredSizes(value, `${where}.${name}`);
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
