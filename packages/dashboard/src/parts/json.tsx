/** A value as indented, colored JSON. Long ones show their beginning first. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { tokenize } from "../format/json.js";
import { plural } from "../format/number.js";
import { CopyButton } from "./copy.js";

const shownLines = 24;
/** Beyond this, colors would cost more than they help. */
const maxColored = 60_000;

export function Json({ value, label }: { value: unknown; label: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const lines = text.split("\n");
  const isLong = lines.length > shownLines + 4 || text.length > maxColored;
  const shown = isLong && !isOpen ? lines.slice(0, shownLines).join("\n").slice(0, maxColored) : text;
  return (
    <div class="json">
      <pre tabIndex={0} aria-label={label}>
        {shown.length > maxColored
          ? shown
          : tokenize(shown).map((token) =>
              token.kind === "plain" ? token.text : <span class={`json-${token.kind}`}>{token.text}</span>,
            )}
      </pre>
      <CopyButton text={text} reveal={() => setOpen(true)} />
      {isLong && (
        <button type="button" class="quiet more" onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show less" : `Show all ${plural(lines.length, "line")}`}
        </button>
      )}
    </div>
  );
}
