/** Reads the text format of Prometheus, as `GET /metrics` gives it. Pure. */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export type Metrics = ReadonlyMap<string, readonly Sample[]>;

const line = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of the metrics whose name begins with `pawl_`, by name. */
export function readMetrics(text: string): Metrics {
  const found = new Map<string, Sample[]>();
  for (const one of text.split("\n")) {
    const [, name, labels = "", value = ""] = line.exec(one) ?? [];
    if (name === undefined || !name.startsWith("pawl_")) continue;
    const sample = {
      labels: Object.fromEntries(
        [...labels.matchAll(label)].map(([, key = "", quoted = ""]) => [key, unquote(quoted)]),
      ),
      value: Number(value),
    };
    const samples = found.get(name);
    if (samples === undefined) found.set(name, [sample]);
    else samples.push(sample);
  }
  return found;
}

export const total = (metrics: Metrics, name: string): number =>
  (metrics.get(name) ?? []).reduce((sum, { value }) => sum + value, 0);

const unquote = (text: string): string =>
  text.replaceAll(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
