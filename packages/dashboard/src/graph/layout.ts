/**
 * Places the steps of a machine in columns, from left to right: a step stands right of every step
 * that leads to it, unless the transition goes back. Long transitions pass between the steps of the
 * columns that they cross. Pure; `drawing.tsx` draws the result.
 */

/** A transition to draw. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

interface PlacedStep extends Point {
  readonly name: string;
  readonly width: number;
}

interface PlacedArrow extends Arrow {
  /** The path of an SVG. */
  readonly path: string;
  readonly labelAt: Point;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly steps: readonly PlacedStep[];
  readonly arrows: readonly PlacedArrow[];
}

export const stepHeight = 34;
const rowGap = 26;
const columnGap = 44;
const letterWidth = 7.3;
const padding = 30;
/** Room for one transition that goes back, below the steps. */
const backGap = 22;
/** Sweeps that put the steps of a column near those they are connected with. */
const sweeps = 6;

/** A step, or a place where a long transition crosses a column. */
interface Node {
  readonly key: string;
  readonly name: string | null;
  readonly rank: number;
  readonly width: number;
  order: number;
}

interface Link {
  readonly arrow: Arrow;
  /** The nodes from the left to the right. */
  readonly chain: readonly Node[];
}

export function layOut(initial: string, names: readonly string[], arrows: readonly Arrow[]): Layout {
  const known = new Set(names);
  const drawn = arrows.filter(({ from, to }) => known.has(from) && known.has(to));
  const back = backArrows(initial, names, drawn);
  const forward = drawn.filter((arrow) => arrow.from !== arrow.to && !back.has(arrow));
  const ranks = ranksOf(names, forward);
  const columns: Node[][] = [];
  const add = (key: string, name: string | null, rank: number, width: number): Node => {
    const column = (columns[rank] ??= []);
    const node = { key, name, rank, width, order: column.length };
    column.push(node);
    return node;
  };
  const nodes = new Map(
    names.map((name) => [name, add(name, name, ranks.get(name) ?? 0, widthOf(name))] as const),
  );
  const links = forward.map((arrow): Link => {
    const first = nodes.get(arrow.from)!;
    const last = nodes.get(arrow.to)!;
    const between = Array.from({ length: last.rank - first.rank - 1 }, (_, index) =>
      add(`${arrow.from} ${arrow.to} ${index}`, null, first.rank + 1 + index, 8),
    );
    return { arrow, chain: [first, ...between, last] };
  });
  order(columns, links);
  return place(columns, links, drawn, back, nodes);
}

const shownLetters = 26;
export const shownName = (name: string): string =>
  name.length > shownLetters ? `${name.slice(0, shownLetters - 1)}…` : name;
const widthOf = (name: string): number => Math.round(shownName(name).length * letterWidth) + padding;

/** The transitions that lead back to a step on the way to them. */
function backArrows(initial: string, names: readonly string[], arrows: readonly Arrow[]): Set<Arrow> {
  const back = new Set<Arrow>();
  const state = new Map<string, "open" | "closed">();
  const visit = (name: string): void => {
    state.set(name, "open");
    for (const arrow of arrows) {
      if (arrow.from !== name || arrow.to === name) continue;
      const seen = state.get(arrow.to);
      if (seen === "open") back.add(arrow);
      else if (seen === undefined) visit(arrow.to);
    }
    state.set(name, "closed");
  };
  for (const name of [initial, ...names]) if (!state.has(name)) visit(name);
  return back;
}

/** The column of each step: the length of the longest way to it. */
function ranksOf(names: readonly string[], arrows: readonly Arrow[]): Map<string, number> {
  const ranks = new Map<string, number>();
  const rankOf = (name: string): number => {
    const known = ranks.get(name);
    if (known !== undefined) return known;
    const rank = arrows.reduce(
      (most, { from, to }) => (to === name ? Math.max(most, rankOf(from) + 1) : most),
      0,
    );
    ranks.set(name, rank);
    return rank;
  };
  for (const name of names) rankOf(name);
  return ranks;
}

/** Puts each node at the middle of its neighbors, column by column, to and fro. */
function order(columns: readonly Node[][], links: readonly Link[]): void {
  const left = new Map<Node, Node[]>();
  const right = new Map<Node, Node[]>();
  const note = (map: Map<Node, Node[]>, node: Node, other: Node): void => {
    const others = map.get(node);
    if (others === undefined) map.set(node, [other]);
    else others.push(other);
  };
  for (const { chain } of links) {
    for (const [index, node] of chain.slice(1).entries()) {
      note(left, node, chain[index]!);
      note(right, chain[index]!, node);
    }
  }
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const isRight = sweep % 2 === 0;
    for (const column of isRight ? columns : columns.toReversed()) {
      const middles = new Map(
        column.map((node) => {
          const others = (isRight ? left : right).get(node) ?? [];
          const sum = others.reduce((all, other) => all + other.order, 0);
          return [node, others.length === 0 ? node.order : sum / others.length];
        }),
      );
      column.sort((a, b) => middles.get(a)! - middles.get(b)!);
      for (const [index, node] of column.entries()) node.order = index;
    }
  }
}

function place(
  columns: readonly Node[][],
  links: readonly Link[],
  drawn: readonly Arrow[],
  back: ReadonlySet<Arrow>,
  nodes: ReadonlyMap<string, Node>,
): Layout {
  const rowHeight = stepHeight + rowGap;
  const rows = Math.max(1, ...columns.map(({ length }) => length));
  const loops = drawn.some(({ from, to }) => from === to) ? 22 : 4;
  const labelRoom = columns.map((_, rank) =>
    Math.max(
      0,
      ...links
        .filter(({ chain }) => chain[0]!.rank === rank)
        .map(({ arrow }) => arrow.label.length * 6.2 - 14),
    ),
  );
  const at = new Map<Node, Point>();
  let x = columnGap;
  for (const [rank, column] of columns.entries()) {
    const width = Math.max(...column.map((node) => node.width));
    const top = loops + ((rows - column.length) * rowHeight) / 2;
    for (const node of column)
      at.set(node, { x: x + (width - node.width) / 2, y: top + node.order * rowHeight });
    x += width + columnGap + Math.min(140, labelRoom[rank] ?? 0);
  }
  const bottom = loops + rows * rowHeight - rowGap;
  let lane = 0;
  const arrows = drawn.map((arrow): PlacedArrow => {
    const from = nodes.get(arrow.from)!;
    const to = nodes.get(arrow.to)!;
    const start = at.get(from)!;
    if (from === to) return { ...arrow, ...loopAt(start, from.width) };
    if (back.has(arrow)) {
      lane += 1;
      const ends = [sideOf(from, columns, at, "right"), sideOf(to, columns, at, "left")] as const;
      return { ...arrow, ...around(...ends, bottom + lane * backGap) };
    }
    const { chain } = links.find((link) => link.arrow === arrow)!;
    return { ...arrow, ...through(chain, at) };
  });
  return {
    width: Math.ceil(x),
    height: Math.ceil(bottom + 6 + (lane === 0 ? 0 : lane * backGap + 8)),
    steps: [...nodes.values()].map((node) => ({ name: node.key, width: node.width, ...at.get(node)! })),
    arrows,
  };
}

type Drawn = Pick<PlacedArrow, "path" | "labelAt">;

/** From the right side of a step to the left side of another, through the crossings between them. */
function through(chain: readonly Node[], at: ReadonlyMap<Node, Point>): Drawn {
  const middle = stepHeight / 2;
  const points = chain.flatMap((node, index) => {
    const { x, y } = at.get(node)!;
    const left = { x, y: y + middle };
    const right = { x: x + node.width, y: y + middle };
    if (index === 0) return [right];
    return index === chain.length - 1 ? [{ x: x - 6, y: y + middle }] : [left, right];
  });
  const path = points
    .map(({ x, y }, index) => {
      const before = points[index - 1];
      if (before === undefined) return `M${x} ${y}`;
      if (index % 2 === 0) return `L${x} ${y}`;
      const bend = (before.x + x) / 2;
      return `C${bend} ${before.y} ${bend} ${y} ${x} ${y}`;
    })
    .join("");
  const [first, second] = [points[0]!, points[1]!];
  return { path, labelAt: { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 - 5 } };
}

/** Where a transition that goes back leaves or enters a step, and the way from there down. */
interface Side extends Point {
  /** The x of the way down: below the step, or beside its column if another step is below it. */
  readonly downX: number;
}

function sideOf(
  node: Node,
  columns: readonly Node[][],
  at: ReadonlyMap<Node, Point>,
  side: "left" | "right",
): Side {
  const { x, y } = at.get(node)!;
  const column = columns[node.rank]!;
  const isFree = !column.some((one) => one.name !== null && one.order > node.order);
  if (isFree) {
    const downX = x + node.width * (side === "right" ? 0.6 : 0.4);
    return { x: downX, y: y + stepHeight, downX };
  }
  const middle = y + stepHeight / 2;
  const rights = column.map((one) => at.get(one)!.x + one.width);
  const lefts = column.map((one) => at.get(one)!.x);
  return side === "right"
    ? { x: x + node.width, y: middle, downX: Math.max(...rights) + 31 }
    : { x, y: middle, downX: Math.min(...lefts) - 18 };
}

/** Below everything, back to a step further left. */
function around(start: Side, end: Side, y: number): Drawn {
  const down =
    start.x === start.downX
      ? `M${start.x} ${start.y}`
      : `M${start.x} ${start.y}C${start.downX} ${start.y} ${start.downX} ${start.y} ${start.downX} ${start.y + 14}`;
  const up =
    end.x === end.downX
      ? `C${end.x} ${y} ${end.x} ${y} ${end.x} ${end.y + 6}`
      : `C${end.downX} ${y} ${end.downX} ${y} ${end.downX} ${y - 14}L${end.downX} ${end.y + 10}C${end.downX} ${end.y} ${end.downX} ${end.y} ${end.x - 6} ${end.y}`;
  const path = `${down}L${start.downX} ${y - 14}C${start.downX} ${y} ${start.downX} ${y} ${start.downX - 14} ${y}L${end.downX + 14} ${y}${up}`;
  return { path, labelAt: { x: (start.downX + end.downX) / 2, y: y - 5 } };
}

/** A loop above a step. */
function loopAt({ x, y }: Point, width: number): Drawn {
  const middle = x + width / 2;
  const path = `M${middle + 12} ${y}C${middle + 16} ${y - 18} ${middle - 16} ${y - 18} ${middle - 12} ${y - 5}`;
  return { path, labelAt: { x: middle, y: y - 15 } };
}
