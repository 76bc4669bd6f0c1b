/**
 * The stack of a thrown error as Pawl records and logs it: the first line with name and message,
 * then the frames of the user's code and libraries. Frames of Pawl itself and of Node's internals
 * are left out. Node applies source maps when the stack is read, if they are switched on. Pure.
 * Called by `error-record.ts`.
 */

import { byteLength } from "./bytes.js";
import { shorten } from "./show.js";

const bounds = { characters: 65_536, firstLine: 200, beforeMessage: 200 };

/**
 * Where the code of this package is, as frames name it: read from a frame of this file. Empty if a
 * bundler moved this file: the frames of Pawl then cannot be told from others, and all are kept.
 */
const ownPlaces = placesOf(new Error("here").stack);

/** A bundler has moved this file. */
export const isBundled = ownPlaces.length === 0;

function placesOf(stack: string | undefined): readonly string[] {
  const root =
    /(?:\(|at )((?:file:\/\/)?\/[^\n]*\/)(?:src|dist)\/values\/stack\.[jt]s(?:\?[^\n]*)?:\d+:\d+\)?$/m.exec(
      stack ?? "",
    )?.[1];
  if (root === undefined) return [];
  const path = decodeURIComponent(root.replace(/^file:\/\//, ""));
  const url = `file://${encodeURI(path)}`;
  return [root, path, url].flatMap((place) => [`${place}src/`, `${place}dist/`]);
}

/** The stack without the engine's frames; undefined if no frame is left. */
export function userStack(stack: unknown, name: string, message: string): string | undefined {
  if (typeof stack !== "string") return undefined;
  const frames = framesOf(afterMessage(stack, message).slice(0, bounds.characters));
  if (frames.length === 0) return undefined;
  const [line = ""] = message.split("\n", 1);
  return [shorten(line === "" ? name : `${name}: ${line}`, bounds.firstLine), ...frames].join("\n");
}

/** The frames of a stack, without its first line. */
export function framesOf(stack: string): string[] {
  return stack.split("\n").filter((line) => /^\s*at /.test(line) && !isOfEngine(line));
}

/** Lines of a message may look like frames, so the frames begin after it. */
function afterMessage(stack: string, message: string): string {
  const at = message === "" ? -1 : stack.indexOf(message);
  return at === -1 || at > bounds.beforeMessage ? stack : stack.slice(at + message.length);
}

function isOfEngine(frame: string): boolean {
  return frame.includes("node:internal/") || ownPlaces.some((place) => frame.includes(place));
}

/**
 * The longest beginning of a stack, in whole lines, that is at most `bytes` long as JSON; undefined
 * if that has no frame.
 */
export function cutStack(stack: string, bytes: number): string | undefined {
  const kept: string[] = [];
  // The quotes, and a line break less than there are lines.
  let left = bytes - '""'.length + String.raw`\n`.length;
  for (const line of stack.split("\n")) {
    left -= byteLength(JSON.stringify(line)) - '""'.length + String.raw`\n`.length;
    if (left < 0) break;
    kept.push(line);
  }
  return kept.length < 2 ? undefined : kept.join("\n");
}
