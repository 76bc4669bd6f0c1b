/** The form that sends a signal to a run. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { cli } from "../format/command.js";
import { uniqueKey } from "../format/unique.js";
import { Dialog, Field, readJson } from "./dialog.js";

/** With an empty name it asks for one. */
export function SignalDialog(props: {
  runId: string;
  name: string;
  onClose: () => void;
  onDone: () => void;
}): JSX.Element {
  const { runId, onClose, onDone } = props;
  const [name, setName] = useState(props.name);
  const [text, setText] = useState("{}");
  // One key for this dialog: a second click after a lost answer sends nothing twice.
  const [dedupKey] = useState(uniqueKey);
  return (
    <Dialog
      title={props.name === "" ? `Send a signal to run ${runId}` : `Send “${name}” to run ${runId}`}
      verb="Send the signal"
      command={cli("runs", "signal", runId, name === "" ? "name" : name, JSON.stringify(parsed(text)))}
      onClose={onClose}
      act={async () => {
        const body = readJson(text, "payload");
        await call(`v1/runs/${runId}/signals/${encodeURIComponent(name)}`, {
          method: "POST",
          body,
          dedupKey,
        });
        onDone();
      }}
    >
      {props.name === "" && (
        <Field label="Name">
          <input
            name="name"
            required
            autofocus
            spellcheck={false}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
      )}
      <Field label="Payload" hint="Any JSON but null. The run reads it.">
        <textarea
          name="payload"
          rows={5}
          spellcheck={false}
          autofocus={props.name !== ""}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </Field>
    </Dialog>
  );
}

/** For the command that is shown while somebody types. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
