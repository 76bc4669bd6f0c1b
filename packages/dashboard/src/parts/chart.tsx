/**
 * A chart over time, drawn by uPlot, which the first chart loads. Its legend shows the sums of the
 * whole time, and under the pointer the values there. All charts of a page share one pointer.
 */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { theme } from "../api/theme.js";

interface Line {
  readonly label: string;
  /** The name of a color in the styles, such as "completed". */
  readonly color: string;
  readonly values: readonly (number | null)[];
  /** Whether the space below is filled. */
  readonly isFilled?: boolean;
  readonly dash?: readonly number[];
}

export interface ChartProps {
  readonly title: string;
  /** In seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The sum or the latest of the values, for the legend. */
  readonly summary: (values: readonly (number | null)[]) => string;
}

const height = 150;
const isDark = matchMedia("(prefers-color-scheme: dark)");

export function Chart(props: ChartProps): JSX.Element {
  const { title, times, lines, format, summary } = props;
  const room = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const chosen = theme.value;

  useEffect(() => {
    const element = room.current;
    if (element === null) return undefined;
    let isGone = false;
    const draw = async (): Promise<void> => {
      const { default: Plot } = await import("uplot");
      if (isGone) return;
      plot.current?.destroy();
      const options = optionsOf(latest.current, element, setAt);
      plot.current = new Plot(options, dataOf(latest.current), element);
    };
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    const redraw = (): void => void draw();
    isDark.addEventListener("change", redraw);
    redraw();
    return () => {
      isGone = true;
      resized.disconnect();
      isDark.removeEventListener("change", redraw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [chosen]);
  useEffect(() => plot.current?.setData(dataOf(props)), [times, lines]);

  const said = lines.map(({ label, values }) => `${label} ${summary(values)}`).join(", ");
  return (
    <figure class="chart" aria-label={`${title}: ${said}`}>
      <figcaption>
        <strong>{title}</strong>
        {lines.map(({ label, color, values, dash }) => {
          const value = at === null ? undefined : values[at];
          return (
            <span key={label} class="chart-value">
              <span class={`swatch ink-${color}${dash === undefined ? "" : " dashed"}`} />
              {label}{" "}
              <b class="number">
                {at === null ? summary(values) : value === null || value === undefined ? "–" : format(value)}
              </b>
            </span>
          );
        })}
      </figcaption>
      <div class="chart-room" ref={room} aria-hidden="true" />
    </figure>
  );
}

function dataOf({ times, lines }: ChartProps): uPlot.AlignedData {
  return [[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData;
}

function optionsOf(
  { lines }: ChartProps,
  element: HTMLElement,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  // A color of `light-dark()` is only known where it is used.
  const colorOf = (name: string): string => {
    const probe = document.createElement("i");
    probe.className = `ink-${name}`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const axis = {
    stroke: colorOf("faint"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colorOf("line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { sync: { key: "pawl" }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_self, _least, most) => [0, Math.max(1, (most ?? 0) * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 24, gap: 6, values: timesOf },
      {
        ...axis,
        size: 52,
        gap: 4,
        space: 30,
        values: (_self, splits) => splits.map((value) => formatAxis(lines[0]?.label ?? "", value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, color, isFilled = false, dash }): uPlot.Series => {
        const stroke = colorOf(color);
        return {
          label,
          stroke,
          width: 1.75,
          points: { show: false, filter: lonePoints, size: 4, fill: stroke },
          ...(dash === undefined ? {} : { dash: [...dash] }),
          ...(isFilled ? { fill: stroke.replace(/^rgb\((.*)\)$/, "rgb($1 / 12%)").replaceAll(",", "") } : {}),
        };
      }),
    ],
    hooks: { setCursor: [(self) => onPoint(self.cursor.idx ?? null)] },
  };
}

/** A line needs two neighbours: a value without any is drawn as a point. */
function lonePoints(self: uPlot, line: number): number[] | null {
  const values = self.data[line] ?? [];
  const isThere = (index: number): boolean => typeof values[index] === "number";
  const lone = [...values.keys()].filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
  return lone.length === 0 ? null : lone;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** The time of day; where a day begins, or over many days, the day. */
function timesOf(_self: uPlot, splits: number[]): string[] {
  const isLong = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 2 * 86_400;
  return splits.map((seconds) => {
    const at = new Date(seconds * 1_000);
    const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
    return isLong || isMidnight ? day.format(at) : clock.format(at);
  });
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Short: milliseconds of the chart of durations become seconds or minutes. */
function formatAxis(label: string, value: number): string {
  if (!/^p\d/.test(label)) return Number.isInteger(value) ? compact.format(value) : "";
  if (value < 1_000) return `${compact.format(value)} ms`;
  if (value < 120_000) return `${compact.format(value / 1_000)} s`;
  return value < 7_200_000
    ? `${compact.format(value / 60_000)} min`
    : `${compact.format(value / 3_600_000)} h`;
}
