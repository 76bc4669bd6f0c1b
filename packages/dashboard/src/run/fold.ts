/**
 * The time scale of a waterfall, with idle time folded: a run that works for a second, sleeps for
 * three days and works again shows its work, and the three days as a narrow band. Pure.
 */

/** When something lasted. Idle: nothing was executed, such as a sleep or a wait for a signal. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly isIdle: boolean;
}

interface Fold {
  readonly fromMs: number;
  readonly toMs: number;
  /** Where the band begins and ends, as shares of the width. */
  readonly left: number;
  readonly right: number;
}

export interface Scale {
  /** The place of a time, as a share of the width. */
  at(ms: number): number;
  readonly folds: readonly Fold[];
}

interface Segment {
  readonly fromMs: number;
  readonly toMs: number;
  readonly isBusy: boolean;
}

/** A band has at most this share of the busy time, and all bands together at most that. */
const bandShare = 0.2;
const bandsShare = 0.6;

export function foldIdle(spans: readonly Span[], fromMs: number, toMs: number): Scale {
  const segments = cut(spans, fromMs, Math.max(toMs, fromMs + 1));
  const length = ({ fromMs: from, toMs: to }: Segment): number => to - from;
  const busyMs = segments.filter(({ isBusy }) => isBusy).reduce((sum, one) => sum + length(one), 0);
  const idle = segments.filter(({ isBusy }) => !isBusy);
  const bandMs =
    busyMs === 0 ? Number.POSITIVE_INFINITY : Math.min(bandShare, bandsShare / idle.length) * busyMs;
  const isFolded = (one: Segment): boolean => !one.isBusy && length(one) > 2 * bandMs;
  const weights = segments.map((one) => (isFolded(one) ? bandMs : length(one)));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const lefts: number[] = [];
  weights.reduce((sum, weight) => {
    lefts.push(sum / all);
    return sum + weight;
  }, 0);
  const rightOf = (index: number): number => lefts[index + 1] ?? 1;

  const at = (ms: number): number => {
    if (ms <= fromMs) return 0;
    let low = 0;
    let high = segments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (segments[middle]!.fromMs <= ms) low = middle;
      else high = middle - 1;
    }
    const segment = segments[low]!;
    const share = Math.min(1, (ms - segment.fromMs) / length(segment));
    return lefts[low]! + share * (rightOf(low) - lefts[low]!);
  };
  const folds = segments.flatMap((one, index) =>
    isFolded(one) ? [{ fromMs: one.fromMs, toMs: one.toMs, left: lefts[index]!, right: rightOf(index) }] : [],
  );
  return { at, folds };
}

/** The whole time in pieces, each busy or idle throughout; neighbors of one kind are one piece. */
function cut(spans: readonly Span[], fromMs: number, toMs: number): Segment[] {
  const changes = new Map<number, number>();
  const add = (ms: number, change: number): void => {
    const at = Math.min(toMs, Math.max(fromMs, ms));
    changes.set(at, (changes.get(at) ?? 0) + change);
  };
  for (const span of spans) {
    if (span.isIdle) continue;
    add(span.fromMs, 1);
    add(span.toMs, -1);
  }
  changes.set(toMs, 0);
  const segments: Segment[] = [];
  let begun = fromMs;
  let busy = 0;
  for (const [ms, change] of [...changes].toSorted(([a], [b]) => a - b)) {
    const before = segments.at(-1);
    if (ms > begun) {
      if (before?.isBusy === busy > 0) segments.splice(-1, 1, { ...before, toMs: ms });
      else segments.push({ fromMs: begun, toMs: ms, isBusy: busy > 0 });
    }
    begun = ms;
    busy += change;
  }
  return segments;
}
