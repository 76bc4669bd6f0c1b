/** A list of names and values. */

import type { ComponentChildren, JSX } from "preact";

export type Fact = readonly [label: string, value: ComponentChildren];

export function FactList({ facts }: { facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
