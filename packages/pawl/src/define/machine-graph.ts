/**
 * The graph of a machine: its steps, and the transitions that the code of each step names. Pawl
 * reads them from the source text of the functions, `ctx.next("ship", …)`, without calling them. A
 * step whose name is computed, or that a helper function elsewhere names, is missing there: a graph
 * explains a machine, and nothing decides by it. Used by `machine.diagram()`, by the registration of
 * a worker, and through that by the dashboard. Pure.
 */

import type { MachineDefinition } from "./definition.js";

/** A transition from step to step that the code names. */
interface MachineTransition {
  readonly from: string;
  readonly to: string;
  /** The outcome that leads there. */
  readonly by: "next" | "retry" | "awaitSignal" | "spawn";
  /** The signals that `awaitSignal` names. */
  readonly signals?: readonly string[];
}

/** The steps of a machine, with the outcomes that its code names. */
export interface MachineGraph {
  readonly initial: string;
  readonly steps: readonly string[];
  readonly transitions: readonly MachineTransition[];
  /** The steps that end the run. */
  readonly ends: readonly { readonly from: string; readonly by: "done" | "stop" }[];
  /** Where `handle` continues after an error, whichever step threw it. */
  readonly onError: readonly string[];
}

/** More transitions than this tell nobody anything, and a worker registers them. */
const maxTransitions = 500;

/** Reads the graph from the code of a machine. */
export function machineGraph({
  initial,
  steps,
  handle,
}: Pick<MachineDefinition, "initial" | "steps" | "handle">): MachineGraph {
  const names = [...steps.keys()];
  const transitions = new Map<string, MachineTransition>();
  const ends = new Map<string, MachineGraph["ends"][number]>();
  for (const [from, step] of steps) {
    for (const { by, to, signals } of outcomesIn(String(step))) {
      const key = JSON.stringify([from, by, to, signals]);
      if (by === "done" || by === "stop") ends.set(key, { from, by });
      else if (by === "retry") transitions.set(key, { from, to: from, by });
      else if (names.includes(to))
        transitions.set(key, by === "awaitSignal" ? { from, to, by, signals } : { from, to, by });
    }
  }
  const handled = handle === undefined ? [] : outcomesIn(String(handle)).map(({ to }) => to);
  return {
    initial,
    steps: names,
    transitions: [...transitions.values()].slice(0, maxTransitions),
    ends: [...ends.values()],
    onError: [...new Set(handled)].filter((to) => names.includes(to)),
  };
}

/** Strings, templates, comments, names, and single signs. A string ends at its line at the latest. */
const token =
  /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|\/\/[^\n]*|\/\*[^]*?\*\/|[\p{ID_Start}$_][\p{ID_Continue}$]*|\S/gu;

const outcomes = ["next", "retry", "awaitSignal", "spawn", "done", "stop"] as const;

interface Named {
  readonly by: (typeof outcomes)[number];
  /** The text in the place of the next step. */
  readonly to: string;
  readonly signals: readonly string[];
}

/** The outcomes that this code makes, such as `next("ship", …)`, one for each text that names a step. */
function outcomesIn(code: string): Named[] {
  const tokens = (code.match(token) ?? []).filter((one) => !/^\/[/*]/.test(one));
  return tokens.flatMap((word, index): Named[] => {
    const by = outcomes.find((one) => one === word);
    if (by === undefined || tokens[index + 1] !== "(") return [];
    if (by === "done" || by === "stop" || by === "retry") return [{ by, to: "", signals: [] }];
    const [first = [], second = []] = argumentsAt(tokens, index + 2);
    const signals = by === "awaitSignal" ? textsIn(first) : [];
    return textsIn(by === "awaitSignal" ? second : first).map((to) => ({ by, to, signals }));
  });
}

/** The tokens of the arguments of a call, without those of calls and values inside. */
function argumentsAt(tokens: readonly string[], start: number): string[][] {
  const given: string[][] = [[]];
  let depth = 0;
  for (const one of tokens.slice(start)) {
    if (/^[)\]}]$/.test(one)) depth -= 1;
    if (depth < 0) break;
    if (one === "," && depth === 0) given.push([]);
    else given.at(-1)?.push(one);
    if (/^[([{]$/.test(one)) depth += 1;
  }
  return given;
}

/** The strings among these tokens, as in `isPaid ? "ship" : "refuse"`. */
function textsIn(tokens: readonly string[]): string[] {
  return tokens.flatMap((one) => {
    if (!/^["'`]/.test(one) || one.length < 2 || one.includes("${")) return [];
    return [one.slice(1, -1).replaceAll(/\\(.)/g, "$1")];
  });
}

/** A Mermaid state diagram of the graph. */
export function toMermaid({ initial, steps, transitions, ends, onError }: MachineGraph): string {
  const ids = new Map<string, string>();
  const lines = ["stateDiagram-v2"];
  const name = (key: string, shown: string): void => {
    const plain = shown.replaceAll(/\W/g, "_");
    const isFree = !reserved.test(plain) && ![...ids.values()].includes(plain);
    const id = isFree ? plain : `${plain}_${ids.size + 1}`;
    ids.set(key, id);
    if (id !== shown) lines.push(`    state "${shown.replaceAll('"', "'")}" as ${id}`);
  };
  const draw = (from: string, to: string, label: string): void => {
    lines.push(`    ${from} --> ${to}${label === "" ? "" : `: ${label.replaceAll(/[:;#\s]+/g, " ")}`}`);
  };
  const idOf = (step: string): string => ids.get(step) ?? step;
  for (const step of steps) name(step, step);
  if (onError.length > 0) name(anyStep, "any step");
  draw("[*]", idOf(initial), "");
  for (const { from, to, by, signals } of transitions) draw(idOf(from), idOf(to), labelOf(by, signals));
  for (const to of onError) draw(idOf(anyStep), idOf(to), "error");
  for (const { from, by } of ends) draw(idOf(from), "[*]", by);
  return lines.join("\n");
}

/** Where errors come from. No step has an empty name. */
const anyStep = "";

/** Words that Mermaid reads as its own. */
const reserved = /^\d|^(?:state|note|end|direction|class|classdef|style|click)$/i;

function labelOf(by: MachineTransition["by"], signals: readonly string[] = []): string {
  if (by === "next") return "";
  if (by === "spawn") return "children";
  return by === "retry" ? "retry" : signals.length === 0 ? "signal" : signals.join(" or ");
}
