/**
 * Counters, gauges and histograms in the text format of Prometheus (exposition format 0.0.4). Each
 * metric has a bounded number of series. Label values beyond the bound count as `other`, so names
 * that users make up cannot fill the memory. Counting is two map lookups; the text is built on
 * request. Used by `metrics.ts`, `gauges.ts` and the server.
 */

/** The most values of the first label, and of the second label for each value of the first. */
const maxFirst = 200;
const maxSecond = 100;
/** The most series of one metric. */
const maxSeries = 2_000;
const rest = "other";

export interface Described {
  readonly name: string;
  readonly help: string;
  /** At most two. */
  readonly labels?: readonly string[];
}

/** The series of one metric, by the values of its labels. */
class Family<Series> {
  readonly #labels: readonly string[];
  readonly #make: () => Series;
  readonly #series = new Map<string, Map<string, Series>>();
  #count = 0;

  constructor(labels: readonly string[], make: () => Series) {
    this.#labels = labels;
    this.#make = make;
  }

  get(first: string, second: string): Series {
    return this.#series.get(first)?.get(second) ?? this.#add(first, second);
  }

  #add(first: string, second: string): Series {
    const isFull = this.#count >= maxSeries;
    const outer =
      this.#series.has(first) || (!isFull && this.#series.size < maxFirst) || this.#labels.length === 0
        ? first
        : rest;
    let inner = this.#series.get(outer);
    if (inner === undefined) this.#series.set(outer, (inner = new Map<string, Series>()));
    const last = this.#labels.length > 1 && (isFull || inner.size >= maxSecond) ? rest : second;
    let series = inner.get(last);
    if (series === undefined) {
      inner.set(last, (series = this.#make()));
      this.#count++;
    }
    return series;
  }

  /** All series, each with its labels as text. */
  *[Symbol.iterator](): Generator<[labels: string, series: Series]> {
    const [one, two] = this.#labels;
    for (const [first, inner] of this.#series) {
      for (const [second, series] of inner) {
        const labels = [one && `${one}="${escape(first)}"`, two && `${two}="${escape(second)}"`];
        yield [labels.filter(Boolean).join(","), series];
      }
    }
  }
}

const escape = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** Any metric. */
export interface Metric {
  lines(): string[];
}

function head({ name, help }: Described, type: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function line(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`;
}

export class Counter implements Metric {
  readonly #described: Described;
  readonly #family: Family<{ value: number }>;

  constructor(described: Described) {
    this.#described = described;
    this.#family = new Family(described.labels ?? [], () => ({ value: 0 }));
    // A metric without labels has one series, which is present from the beginning.
    if (described.labels === undefined) this.add(0);
  }

  add(count: number, first = "", second = ""): void {
    this.#family.get(first, second).value += count;
  }

  lines(): string[] {
    const { name } = this.#described;
    const lines = [...this.#family].map(([labels, { value }]) => line(name, labels, value));
    return [...head(this.#described, "counter"), ...lines];
  }
}

/** A value of a gauge, with its label values. */
export type Reading = readonly [value: number, first?: string, second?: string];

/** A value that is read when the text is requested. */
export class Gauge implements Metric {
  readonly #described: Described;
  readonly #read: () => Iterable<Reading>;

  constructor(described: Described, read: () => Iterable<Reading>) {
    this.#described = described;
    this.#read = read;
  }

  lines(): string[] {
    const { name, labels = [] } = this.#described;
    const family = new Family(labels, () => ({ value: 0 }));
    for (const [value, first = "", second = ""] of this.#read()) family.get(first, second).value += value;
    const lines = [...family].map(([of, { value }]) => line(name, of, value));
    return [...head(this.#described, "gauge"), ...lines];
  }
}

interface Observed {
  readonly counts: number[];
  sum: number;
  count: number;
}

export class Histogram implements Metric {
  readonly #described: Described;
  readonly #buckets: readonly number[];
  readonly #family: Family<Observed>;

  constructor(described: Described, buckets: readonly number[]) {
    this.#described = described;
    this.#buckets = buckets;
    this.#family = new Family(described.labels ?? [], () => {
      return { counts: new Array<number>(buckets.length + 1).fill(0), sum: 0, count: 0 };
    });
  }

  observe(value: number, first = "", second = ""): void {
    const observed = this.#family.get(first, second);
    let bucket = 0;
    while (bucket < this.#buckets.length && value > this.#buckets[bucket]!) bucket++;
    observed.counts[bucket]!++;
    observed.sum += value;
    observed.count++;
  }

  lines(): string[] {
    const { name } = this.#described;
    const lines = head(this.#described, "histogram");
    for (const [labels, { counts, sum, count }] of this.#family) {
      const before = labels === "" ? "" : `${labels},`;
      let upTo = 0;
      for (const [index, bucket] of this.#buckets.entries()) {
        upTo += counts[index]!;
        lines.push(`${name}_bucket{${before}le="${bucket}"} ${upTo}`);
      }
      lines.push(`${name}_bucket{${before}le="+Inf"} ${count}`);
      lines.push(line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, count));
    }
    return lines;
  }
}

export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

/** These metrics as text for Prometheus. */
export function expose(metrics: Iterable<Metric>): string {
  return `${[...metrics].flatMap((metric) => metric.lines()).join("\n")}\n`;
}
