/** A button that does one thing after a confirmation, with the command that does the same. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { type Call, call } from "../api/client.js";
import type { Scope } from "../api/me.js";
import { Button } from "./button.js";
import { Dialog, Field } from "./dialog.js";

export interface Act {
  /** The words on the button. */
  readonly label: string;
  /** Read to people who do not see where the button is. */
  readonly description?: string;
  /** The scope that the call needs. Default "write". */
  readonly scope?: Scope;
  readonly title: string;
  readonly verb: string;
  /** Explains the effect, before the user confirms. */
  readonly consequence: ComponentChildren;
  readonly isDangerous?: boolean;
  readonly isPrimary?: boolean;
  /** Whether to ask for a reason. */
  readonly asksReason?: boolean;
  readonly command: (reason: string) => string;
  readonly path: string;
  readonly method?: Call["method"];
  readonly body?: (reason: string) => unknown;
  readonly onDone: () => void;
}

export function ActButton(act: Act): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        scope={act.scope ?? "write"}
        class={`${act.isPrimary === true ? "primary" : ""} ${act.isDangerous === true ? "danger" : ""}`}
        aria-label={act.description}
        onClick={() => setOpen(true)}
      >
        {act.label}
      </Button>
      {isOpen && <ActDialog act={act} onClose={() => setOpen(false)} />}
    </>
  );
}

function ActDialog({ act, onClose }: { act: Act; onClose: () => void }): JSX.Element {
  const [reason, setReason] = useState("");
  return (
    <Dialog
      title={act.title}
      verb={act.verb}
      isDangerous={act.isDangerous === true}
      command={act.command(reason)}
      onClose={onClose}
      act={async () => {
        const body = act.body?.(reason);
        await call(act.path, { method: act.method ?? "POST", ...(body === undefined ? {} : { body }) });
        act.onDone();
      }}
    >
      <p>{act.consequence}</p>
      {act.asksReason === true && (
        <Field label="Reason" hint="Optional. Shown to people who ask.">
          <input
            name="reason"
            autofocus
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </Field>
      )}
    </Dialog>
  );
}
