/**
 * Prints tables: aligned columns without lines. On a terminal the last column is cut to the width.
 */

import Table from "cli-table3";
import type { Shell } from "./shell.js";

const gap = 2;
const least = 12;

const noLines = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: " ".repeat(gap),
};

/** The lines of a table. Cells may be coloured. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[], shell: Shell): string {
  const last = heads.length - 1;
  const widths = heads.map((head, column) =>
    Math.max(...[head, ...rows.map((row) => row[column] ?? "")].map(widthOf)),
  );
  const taken = widths.slice(0, last).reduce((sum, width) => sum + width + gap, 0);
  if (shell.isTerminal) widths[last] = Math.max(least, Math.min(widths[last] ?? 0, shell.columns - taken));
  const drawn = new Table({
    chars: noLines,
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
    colWidths: widths.map((width) => Math.max(width, 1)),
    wordWrap: false,
  });
  drawn.push(
    heads.map((head) => shell.colors.bold(head)),
    ...rows.map((row) => [...row]),
  );
  return drawn
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** A list of names and values in two columns, without empty values. */
export function properties(entries: readonly (readonly [string, string])[], shell: Shell): string {
  const filled = entries.filter(([, value]) => value !== "");
  const width = Math.max(...filled.map(([name]) => name.length)) + gap;
  return filled
    .map(([name, value]) => `${shell.colors.dim(name.padEnd(width))}${indent(value, width)}`)
    .join("\n");
}

const indent = (text: string, width: number): string => text.replaceAll("\n", `\n${" ".repeat(width)}`);

// oxlint-disable-next-line no-control-regex
const widthOf = (text: string): number => text.replaceAll(/\u001B\[\d+m/g, "").length;
