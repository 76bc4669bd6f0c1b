/** Starting a run from the page, and how to start the first one at all. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import { goTo, pageAt } from "../api/router.js";
import type { DefinitionPage } from "../api/types.js";
import { cli } from "../format/command.js";
import { uniqueKey } from "../format/unique.js";
import { Button } from "../parts/button.js";
import { Code } from "../parts/copy.js";
import { Dialog, Field, readJson } from "../parts/dialog.js";
import { icons } from "../parts/icons.js";
import { Empty } from "../parts/page.js";

export function StartButton({ name = "" }: { name?: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button scope="start" class="primary" onClick={() => setOpen(true)}>
        {icons.plus}
        Start a run…
      </Button>
      {isOpen && <StartDialog name={name} onClose={() => setOpen(false)} />}
    </>
  );
}

function StartDialog(props: { name: string; onClose: () => void }): JSX.Element {
  const [name, setName] = useState(props.name);
  const [input, setInput] = useState("{}");
  const [known, setKnown] = useState<readonly string[]>([]);
  const [idempotencyKey] = useState(uniqueKey);
  const suggest = async (): Promise<void> => {
    if (known.length > 0) return;
    const { definitions } = await call<DefinitionPage>("v1/definitions");
    setKnown([...new Set(definitions.map((definition) => definition.name))]);
  };
  return (
    <Dialog
      title="Start a run"
      verb="Start"
      command={cli("runs", "start", name === "" ? "name" : name, input)}
      onClose={props.onClose}
      act={async () => {
        const { runId } = await call<{ runId: string }>(`v1/workflows/${encodeURIComponent(name)}/runs`, {
          method: "POST",
          body: { input: readJson(input, "input") },
          dedupKey: idempotencyKey,
        });
        goTo(pageAt(`runs/${runId}`));
      }}
    >
      <Field label="Definition">
        <input
          name="definition"
          list="definitions"
          required
          autofocus
          autocomplete="off"
          spellcheck={false}
          value={name}
          onFocus={() => void suggest().catch(() => {})}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <datalist id="definitions">
          {known.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      </Field>
      <Field label="Input" hint="Any JSON.">
        <textarea
          name="input"
          rows={5}
          spellcheck={false}
          value={input}
          onInput={(event) => setInput(event.currentTarget.value)}
        />
      </Field>
    </Dialog>
  );
}

const definition = `import { workflow } from "pawl";

export const signup = workflow({
  name: "signup",
  run: async ({ step }, input: { email: string }) => {
    await step.run("send-welcome", () => console.log(input.email));
    await step.sleep("settle-in", "10s");
    return "welcome";
  },
});`;

export function FirstRun(): JSX.Element {
  return (
    <Empty title="No run yet">
      <p>A run is one execution of a definition. Three steps to your first:</p>
      <ol class="lesson">
        <li>
          <p>
            Write a definition in <code>definitions.ts</code>:
          </p>
          <Code text={definition} label="A definition" />
        </li>
        <li>
          <p>Serve it:</p>
          <Code text="npx pawl dev --watch definitions.ts" label="Serve it" />
        </li>
        <li>
          <p>Start a run, here or in another terminal. It appears in this list.</p>
          <Code text={cli("runs", "start", "signup", '{"email":"ada@example.com"}')} label="Start a run" />
        </li>
      </ol>
    </Empty>
  );
}
