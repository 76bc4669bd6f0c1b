/**
 * Line plots as SVG, for the curves that benches draw: one or more panels beside each other over
 * the same x, each with axes, grid, labels and a legend. Supports positive values, y from zero, x
 * linear or logarithmic.
 */

export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

export interface Plot {
  readonly title: string;
  readonly xLabel: string;
  readonly xScale: "log" | "linear";
  readonly panels: readonly Panel[];
}

const panelWidth = 430;
const height = 346;
const margin = { left: 66, right: 22, top: 88, bottom: 56 };
const inner = { width: panelWidth - margin.left - margin.right, height: height - margin.top - margin.bottom };
const colours = ["#1f5fa8", "#c2541b", "#2f7d4f", "#7a4b9d", "#8a6d1a", "#555555"];
const ink = "#333333";
const faint = "#dddddd";

export function toSvg({ title, xLabel, xScale, panels }: Plot): string {
  const width = panelWidth * panels.length;
  const xs = panels.flatMap(({ series }) => series.flatMap(({ points }) => points.map(({ x }) => x)));
  const x = horizontal(xs, xScale);
  const drawn = panels.map((panel, index) => drawPanel(panel, xLabel, x, index * panelWidth));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<rect width="${width}" height="${height}" fill="#fdfdfb"/>
${text(width / 2, 22, title, { size: 15, anchor: "middle" })}
${drawn.join("\n")}
</svg>
`;
}

interface Axis {
  place(value: number): number;
  readonly ticks: readonly number[];
}

function horizontal(values: readonly number[], scale: "log" | "linear"): Axis {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (scale === "linear") {
    const ticks = niceTicks(high);
    const span = Math.max(high, ticks.at(-1) ?? 1);
    return { ticks, place: (value) => margin.left + (value / span) * inner.width };
  }
  // A zero has no logarithm: it is drawn one decade left of the smallest value.
  const positive = values.filter((value) => value > 0);
  const least = Math.min(...positive);
  const bottom = Math.log10(low > 0 ? low : least / 10);
  const span = Math.max(Math.log10(high) - bottom, 1e-9);
  const place = (value: number): number =>
    margin.left + ((value > 0 ? Math.log10(value) - bottom : 0) / span) * inner.width;
  return { place, ticks: [...new Set(values)].toSorted((one, other) => one - other) };
}

function vertical(values: readonly number[]): Axis {
  const ticks = niceTicks(Math.max(...values, Number.MIN_VALUE) * 1.08);
  const top = ticks.at(-1) ?? 1;
  return { ticks, place: (value) => margin.top + inner.height * (1 - value / top) };
}

/** From zero to just above, in steps of 1, 2 or 5 times a power of ten. */
function niceTicks(high: number): number[] {
  const rough = high / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const count = Math.ceil(high / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

function drawPanel({ title, unit, series }: Panel, xLabel: string, x: Axis, left: number): string {
  const y = vertical(series.flatMap(({ points }) => points.map((point) => point.y)));
  const bottom = margin.top + inner.height;
  const right = margin.left + inner.width;
  const parts = [
    text(margin.left + inner.width / 2, 44, `${title}, ${unit}`, { size: 12, anchor: "middle" }),
    ...y.ticks.map(
      (tick) =>
        line(margin.left, y.place(tick), right, y.place(tick), faint) +
        text(margin.left - 6, y.place(tick) + 4, short(tick), { anchor: "end" }),
    ),
    ...x.ticks.map(
      (tick) =>
        line(x.place(tick), bottom, x.place(tick), bottom + 4, ink) +
        text(x.place(tick), bottom + 17, short(tick), { anchor: "middle" }),
    ),
    line(margin.left, bottom, right, bottom, ink),
    line(margin.left, margin.top, margin.left, bottom, ink),
    text(margin.left + inner.width / 2, height - 14, xLabel, { size: 12, anchor: "middle" }),
    ...series.map((one, index) => drawSeries(one, x, y, colours[index % colours.length]!)),
    ...legend(series),
  ];
  return `<g transform="translate(${left} 0)">\n${parts.join("\n")}\n</g>`;
}

function drawSeries({ points }: Series, x: Axis, y: Axis, colour: string): string {
  const placed = points.map((point) => [x.place(point.x).toFixed(1), y.place(point.y).toFixed(1)] as const);
  const path = placed.map((pair) => pair.join(",")).join(" ");
  const radius = points.length > 30 ? 1.5 : 3;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...placed.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="${radius}" fill="${colour}"/>`),
  ].join("");
}

/**
 * Above the panel, two lines of two; unless there is only one curve: then the title says it all.
 */
function legend(series: readonly Series[]): string[] {
  if (series.length < 2) return [];
  return series.map(({ name }, index) => {
    const from = margin.left + (index % 2) * (inner.width / 2);
    const y = 60 + Math.floor(index / 2) * 15;
    return (
      `<line x1="${from}" y1="${y}" x2="${from + 14}" y2="${y}" stroke="${colours[index % colours.length]}" stroke-width="2"/>` +
      text(from + 18, y + 4, name, {})
    );
  });
}

function line(x1: number, y1: number, x2: number, y2: number, colour: string): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map((value) => value.toFixed(1));
  return `<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" stroke="${colour}"/>`;
}

function text(
  x: number,
  y: number,
  content: string,
  { size = 11, anchor = "start" }: { size?: number; anchor?: "start" | "middle" | "end" },
): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}" text-anchor="${anchor}" fill="${ink}">${escaped}</text>`;
}

/** 20k instead of 20000. */
function short(value: number): string {
  if (value >= 1e6) return `${trimmed(value / 1e6)}M`;
  if (value >= 1e3) return `${trimmed(value / 1e3)}k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  return String(Number(value.toPrecision(3)));
}
