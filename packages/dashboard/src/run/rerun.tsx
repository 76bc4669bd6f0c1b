/** Running an ended run again: from the step that failed, from another one, or from the start. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { hidesPayloads } from "../api/me.js";
import { goTo, pageAt } from "../api/router.js";
import type { Run } from "../api/types.js";
import { cli } from "../format/command.js";
import { Button } from "../parts/button.js";
import { Dialog, Field, readJson } from "../parts/dialog.js";

interface Props {
  readonly run: Run;
  readonly steps: readonly string[];
  /** The step to begin with, unless somebody chooses another. */
  readonly from?: string;
}

export function RerunButton(props: Props): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const isMain = props.from === undefined;
  return (
    <>
      <Button
        scope="write"
        class={isMain && props.run.status === "failed" ? "primary" : ""}
        onClick={() => setOpen(true)}
      >
        {isMain ? "Rerun…" : "Rerun from here…"}
      </Button>
      {isOpen && <RerunDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function RerunDialog(props: Props & { onClose: () => void }): JSX.Element {
  const { run, steps, onClose } = props;
  const before = JSON.stringify(run.input, null, 2);
  const [from, setFrom] = useState(props.from ?? "");
  const [input, setInput] = useState(before);
  const isChanged = input !== before;
  return (
    <Dialog
      title={`Run ${run.name} #${run.runId} again?`}
      verb="Start the rerun"
      command={cli(
        "runs",
        "rerun",
        run.runId,
        ...(from === "" ? [] : ["--from", from]),
        ...(isChanged ? ["--input", input] : []),
      )}
      onClose={onClose}
      act={async () => {
        const body = {
          ...(from === "" ? {} : { from }),
          ...(isChanged ? { input: readJson(input, "input") } : {}),
        };
        const rerun = await call<{ runId: string }>(`v1/runs/${run.runId}/rerun`, { method: "POST", body });
        goTo(pageAt(`runs/${rerun.runId}`));
      }}
    >
      <p>A new run begins. This one stays as it is, and each names the other.</p>
      <Field label="From">
        <select name="from" value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
          <option value="">{run.status === "failed" ? "where it failed" : "where it ended"}</option>
          <option value="start">the start</option>
          {steps.map((step) => (
            <option key={step} value={step}>
              {step}
            </option>
          ))}
        </select>
      </Field>
      {!hidesPayloads && (
        <Field label="Input" hint="The same as before, unless you change it.">
          <textarea
            name="input"
            rows={5}
            spellcheck={false}
            value={input}
            onInput={(event) => setInput(event.currentTarget.value)}
          />
        </Field>
      )}
    </Dialog>
  );
}
