/** A button that copies a text, and code with such a button. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { icons } from "./icons.js";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button
      type="button"
      class="quiet copy"
      onClick={() => void copy()}
      aria-label={`${label} to the clipboard`}
    >
      {isCopied ? icons.check : icons.copy}
      <span>{isCopied ? "Copied" : label}</span>
    </button>
  );
}

/** A long id within a line, with its button. */
export function CopyableCode({ text }: { text: string }): JSX.Element {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}

/** A command or a program, as it is typed. */
export function Code({ text, label }: { text: string; label?: string }): JSX.Element {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label ?? "Code"}>
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  );
}
