/**
 * The chart of `bench:peers`: one panel per measurement, one bar per contestant and way, best
 * first, with the median beside it and a line over the spread. Rates are linear; latencies are
 * logarithmic, since they lie from one millisecond to one second.
 */

import { plans } from "./measurements.js";
import type { Measurement } from "./protocol.js";
import { labelOf, show, sorted } from "./report.js";
import { ratioOf, type Summary } from "./ratios.js";

const width = 980;
const labelWidth = 250;
const barWidth = 480;
const rowHeight = 24;
const barHeight = 16;
const headHeight = 46;
const gap = 26;
const titleHeight = 64;
const colours = { pawl: "#0b6e4f", postgres: "#7d95b5", other: "#c9a66b", text: "#1c2733", faint: "#5b6875" };

export interface Chart {
  readonly title: string;
  readonly subtitle: string;
}

export function toSvg(
  summaries: readonly Summary[],
  measurements: readonly Measurement[],
  { title, subtitle }: Chart,
): string {
  let top = titleHeight;
  const panels: string[] = [];
  for (const measurement of measurements) {
    const rows = sorted(summaries, measurement);
    if (rows.length === 0) continue;
    panels.push(panel(summaries, measurement, rows, top));
    top += headHeight + rows.length * rowHeight + gap;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}"`,
    ` font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">`,
    `<rect width="${width}" height="${top}" fill="#fbfcfd"/>`,
    text(24, 32, title, { size: 19, weight: 600 }),
    text(24, 52, subtitle, { fill: colours.faint }),
    ...legend(),
    ...panels,
    `</svg>\n`,
  ].join("\n");
}

function legend(): string[] {
  const items = [
    ["Pawl", colours.pawl, 680],
    ["on Postgres", colours.postgres, 740],
    ["not on Postgres", colours.other, 842],
  ] as const;
  return items.map(([label, colour, left]) => {
    return `<rect x="${left}" y="23" width="10" height="10" fill="${colour}"/>${text(left + 15, 32, label, { size: 12 })}`;
  });
}

function panel(
  all: readonly Summary[],
  measurement: Measurement,
  rows: readonly Summary[],
  top: number,
): string {
  const { title, better, unit } = plans[measurement];
  const { ratio, best } = ratioOf(all, measurement);
  const note = unit === "/s" ? "per second, more is better" : "ms, less is better, logarithmic";
  const verdict =
    ratio === null || best === null
      ? ""
      : `Pawl: ${show(ratio)} × ${labelOf(best)}${better === "less" ? " (its time by ours)" : ""}`;
  const scale = scaleOf(rows, better === "less");
  const bars = rows.map((row, index) => bar(row, unit, scale, top + headHeight + index * rowHeight));
  return [
    `<g>`,
    `<line x1="24" x2="${width - 24}" y1="${top}" y2="${top}" stroke="#dfe5ea"/>`,
    text(24, top + 22, title, { size: 14, weight: 600 }),
    text(24, top + 38, note, { size: 11, fill: colours.faint }),
    text(width - 24, top + 22, verdict, { size: 13, fill: colours.pawl, weight: 600, anchor: "end" }),
    ...bars,
    `</g>`,
  ].join("\n");
}

function bar(row: Summary, unit: string, scale: (value: number) => number, top: number): string {
  const middle = top + barHeight / 2;
  const label = text(labelWidth + 14, middle + 4, labelOf(row), { size: 12, anchor: "end" });
  const left = labelWidth + 24;
  if (row.value === null) return label + text(left, middle + 4, "failed", { size: 12, fill: colours.faint });
  const length = scale(row.value);
  const spread = `x1="${(left + scale(row.least!)).toFixed(1)}" x2="${(left + scale(row.most!)).toFixed(1)}"`;
  const beside = left + Math.max(length, scale(row.most!)) + 8;
  const part = row.isPart ? " (not compared)" : "";
  return [
    label,
    `<rect class="bar" x="${left}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${colourOf(row)}"/>`,
    `<line ${spread} y1="${middle}" y2="${middle}" stroke="${colours.text}" stroke-width="1.5" opacity="0.55"/>`,
    text(beside, middle + 4, `${show(row.value)} ${unit}${part}`, { size: 12 }),
  ].join("");
}

function colourOf({ contestant, isOnPostgres }: Summary): string {
  if (contestant === "pawl") return colours.pawl;
  return isOnPostgres ? colours.postgres : colours.other;
}

/** From a value to the length of its bar; a logarithmic one begins at half of the least. */
function scaleOf(rows: readonly Summary[], isLogarithmic: boolean): (value: number) => number {
  const most = Math.max(...rows.map((row) => row.most ?? 0));
  if (!isLogarithmic) return (value) => (barWidth * value) / most;
  const floor = Math.min(...rows.map((row) => row.least ?? most)) / 2;
  const range = Math.log(most / floor);
  return (value) => Math.max(1, (barWidth * Math.log(Math.max(value, floor) / floor)) / range);
}

interface Look {
  readonly size?: number;
  readonly fill?: string;
  readonly weight?: number;
  readonly anchor?: "start" | "end";
}

function text(x: number, y: number, content: string, look: Look): string {
  const { size = 12, fill = colours.text, weight = 400, anchor = "start" } = look;
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"`;
  return `<text ${place} font-size="${size}" font-weight="${weight}" fill="${fill}">${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
