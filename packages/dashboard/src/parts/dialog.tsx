/**
 * Questions before something is done: a dialog with the consequence in words, the command that does
 * the same, and the error if the server refuses.
 */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem } from "../api/client.js";
import { Code } from "./copy.js";

export interface DialogProps {
  readonly title: string;
  readonly children?: ComponentChildren;
  /** The command that does the same in a terminal. */
  readonly command?: string;
  /** The words on the button that does it. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** Does it. The dialog closes when it has succeeded, and shows why it has not. */
  readonly act: () => Promise<void>;
  readonly onClose: () => void;
}

export function Dialog(props: DialogProps): JSX.Element {
  const { title, children, command, verb, isDangerous = false, act, onClose } = props;
  const element = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);

  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await act();
      onClose();
    } catch (error) {
      setProblem(error instanceof ApiProblem || error instanceof SyntaxError ? error.message : String(error));
      setBusy(false);
    }
  };

  return (
    <dialog ref={element} onClose={onClose} aria-labelledby="dialog-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
        {command !== undefined && (
          <div class="same">
            <p class="muted">The same in a terminal:</p>
            <Code text={command} label="The same in a terminal" />
          </div>
        )}
        {problem !== null && (
          <p class="refused" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={() => element.current?.close()}>
            Back
          </button>
          <button type="submit" class={isDangerous ? "primary danger" : "primary"} disabled={isBusy}>
            {verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** A labelled field of a form. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      {children}
      {hint !== undefined && <span class="muted hint">{hint}</span>}
    </label>
  );
}

/** Reads what somebody typed as JSON; says so if it is none. */
export function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch (error) {
    throw new SyntaxError(`The ${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
