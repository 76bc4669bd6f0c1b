/**
 * A button that copies a text, and code with such a button. Browsers offer the clipboard only over https
 * and at localhost, and people may refuse it: the button then selects the text beside it.
 */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { icons } from "./icons.js";

export function CopyButton(props: {
  text: string;
  label?: string;
  /** Shows all of the text, if a part is hidden. */
  reveal?: () => void;
}): JSX.Element {
  const { text, label = "Copy", reveal } = props;
  const [done, setDone] = useState<"Copied" | "Selected" | null>(null);
  const copy = async (button: HTMLElement): Promise<void> => {
    if (await isWritten(text)) setDone("Copied");
    else {
      reveal?.();
      await new Promise(requestAnimationFrame);
      if (select(button)) setDone("Selected");
    }
    setTimeout(() => setDone(null), 1_500);
  };
  return (
    <button
      type="button"
      class="quiet copy"
      onClick={(event) => void copy(event.currentTarget)}
      aria-label={`${label} to the clipboard`}
    >
      {done === null ? icons.copy : icons.check}
      <span>{done ?? label}</span>
    </button>
  );
}

/** Whether the clipboard has the text now. */
async function isWritten(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Selects the text beside the button, to be copied by the keyboard. Whether there is one. */
function select(button: HTMLElement): boolean {
  const beside = button.parentElement?.querySelector(":scope > pre, :scope > code");
  if (beside === null || beside === undefined) return false;
  getSelection()?.selectAllChildren(beside);
  return true;
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
