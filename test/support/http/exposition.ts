/** Reads the text of metrics as Prometheus would, strictly, so that a wrong line fails the test. */

export interface Exposed {
  /** The names of metrics, and their types. */
  readonly types: ReadonlyMap<string, string>;
  /** The value of a series by its text, such as `pawl_claims_total{queue="default"}`. */
  readonly series: ReadonlyMap<string, number>;
}

export function readExposition(text: string): Exposed {
  const types = new Map<string, string>();
  const series = new Map<string, number>();
  if (!text.endsWith("\n")) throw new Error("the text does not end with a line break");
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, what, name = "", rest = ""] = comment;
      if (what === "TYPE") {
        if (types.has(name)) throw new Error(`two metrics have the name ${name}`);
        types.set(name, rest);
      }
      continue;
    }
    const found = /^([a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})?) (-?[0-9.e+-]+)$/.exec(line);
    if (found === null) throw new Error(`this is no line of metrics: ${line}`);
    const [, of = "", value = ""] = found;
    if (series.has(of)) throw new Error(`two series are ${of}`);
    series.set(of, Number(value));
  }
  return { types, series };
}
