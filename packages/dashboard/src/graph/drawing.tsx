/**
 * The drawing of a machine: its steps, the transitions that its code names, and on the page of a run
 * the present step and the way that led there.
 */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Definition, MachineGraph } from "../api/types.js";
import type { Look } from "../parts/status.js";
import { type Arrow, type Layout, layOut, shownName, stepHeight } from "./layout.js";
import { type Passed, passedUntil } from "./passed.js";

/** The present step of a run. */
export interface Present {
  readonly step: string;
  readonly look: Look;
}

/** The graph that a worker has registered; null: none, as of a job or by an older worker. */
export function graphOf(declared: Definition["declared"]): MachineGraph | null {
  const { initial, steps = [], transitions = [], ends = [], onError = [] } = declared;
  return initial === undefined || steps.length === 0 ? null : { initial, steps, transitions, ends, onError };
}

export function MachineDrawing(props: { graph: MachineGraph; present?: Present }): JSX.Element {
  const { graph, present } = props;
  const { layout, passed } = useMemo(() => {
    const { initial, steps } = graph;
    // A run of an older version may be at a step that this graph does not have.
    const names = present === undefined || steps.includes(present.step) ? steps : [...steps, present.step];
    const arrows = arrowsOf(graph);
    return {
      layout: layOut(initial, names, arrows),
      passed: present === undefined ? null : passedUntil(initial, present.step, withErrors(graph, arrows)),
    };
  }, [graph, present?.step]);
  return (
    <div class="drawing" tabIndex={0} role="group" aria-label="Steps and transitions">
      <svg
        role="img"
        aria-label={describe(graph, present)}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        width={layout.width}
        height={layout.height}
      >
        <defs>
          {["arrow-head", "arrow-head-passed"].map((id) => (
            <marker
              id={id}
              key={id}
              viewBox="0 0 8 8"
              refX="2"
              refY="4"
              markerUnits="userSpaceOnUse"
              markerWidth="9"
              markerHeight="9"
              orient="auto"
            >
              <path d="M0 0.8L7 4L0 7.2z" class={id} />
            </marker>
          ))}
        </defs>
        <Arrows layout={layout} passed={passed} />
        <Steps layout={layout} passed={passed} graph={graph} present={present} />
      </svg>
    </div>
  );
}

function Arrows({ layout, passed }: { layout: Layout; passed: Passed | null }): JSX.Element {
  return (
    <>
      {layout.arrows.map(({ from, to, label, path, labelAt }) => {
        const isPassed =
          passed !== null && [...passed.arrows].some((one) => one.from === from && one.to === to);
        return (
          <g key={`${from} ${to}`} class={isPassed ? "arrow passed" : "arrow"}>
            <path d={path} marker-end={`url(#arrow-head${isPassed ? "-passed" : ""})`} />
            {label !== "" && (
              <text x={labelAt.x} y={labelAt.y}>
                {label.length > 30 ? `${label.slice(0, 29)}…` : label}
                <title>{label}</title>
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

function Steps(props: {
  layout: Layout;
  passed: Passed | null;
  graph: MachineGraph;
  present: Present | undefined;
}): JSX.Element {
  const { layout, passed, graph, present } = props;
  return (
    <>
      {layout.steps.map(({ name, x, y, width }) => {
        const isPresent = name === present?.step;
        const ends = graph.ends.filter(({ from }) => from === name);
        const middle = y + stepHeight / 2;
        const state = isPresent
          ? `present is-${present.look}`
          : passed?.steps.has(name) === true
            ? "passed"
            : "";
        return (
          <g key={name} class={`step ${state}`}>
            {name === graph.initial && (
              <>
                <path class="enter" d={`M${x - 22} ${middle}H${x - 6}`} marker-end="url(#arrow-head)" />
                <circle class="begin" cx={x - 26} cy={middle} r="5" />
              </>
            )}
            {ends.length > 0 && (
              <g class="end">
                <path class="enter" d={`M${x + width} ${middle}h12`} />
                <circle cx={x + width + 17} cy={middle} r="5" />
                <circle class="begin" cx={x + width + 17} cy={middle} r="2.5" />
                <title>{`Ends the run: ${ends.map(({ by }) => by).join(", ")}`}</title>
              </g>
            )}
            <rect x={x} y={y} width={width} height={stepHeight} rx="9" />
            <text x={x + width / 2} y={middle}>
              {shownName(name)}
              <title>{name}</title>
            </text>
          </g>
        );
      })}
    </>
  );
}

/** One arrow for all transitions between two steps. */
function arrowsOf({ transitions }: MachineGraph): Arrow[] {
  const labels = new Map<string, Arrow>();
  for (const { from, to, by, signals = [] } of transitions) {
    const label =
      by === "spawn"
        ? "children"
        : by === "retry"
          ? "retry"
          : by === "awaitSignal"
            ? signals.join(" or ")
            : "";
    const key = JSON.stringify([from, to]);
    const before = labels.get(key)?.label ?? "";
    const both = before === "" || label === "" || before === label ? before || label : `${before}, ${label}`;
    labels.set(key, { from, to, label: both });
  }
  return [...labels.values()];
}

/** `handle` leads from every step to these. They would hide the rest of the drawing. */
function withErrors({ steps, onError }: MachineGraph, arrows: Arrow[]): Arrow[] {
  return [...arrows, ...onError.flatMap((to) => steps.map((from) => ({ from, to, label: "error" })))];
}

/** The same in words. */
function describe({ initial, steps, transitions }: MachineGraph, present?: Present): string {
  const ways = transitions.map(({ from, to }) => `${from} to ${to}`).join(", ");
  const at = present === undefined ? "" : ` The run is at ${present.step}.`;
  return `A machine with the steps ${steps.join(", ")}. It begins with ${initial}. Transitions: ${ways || "none known"}.${at}`;
}
