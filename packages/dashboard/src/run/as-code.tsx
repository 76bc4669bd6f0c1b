/** A run as code to copy: start one like it, or read it, as a command, with curl, in TypeScript. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { hidesPayloads } from "../api/me.js";
import type { Run, Why } from "../api/types.js";
import { Code } from "../parts/copy.js";
import { readWays, signalWays, startWays, type Ways } from "./commands.js";

const kinds = [
  ["cli", "CLI"],
  ["curl", "curl"],
  ["typescript", "TypeScript"],
] as const satisfies readonly (readonly [keyof Ways, string])[];

export function AsCode({ run, why }: { run: Run; why: Why }): JSX.Element {
  const awaited = Array.isArray(why["names"])
    ? why["names"].find((one) => typeof one === "string")
    : undefined;
  const [kind, setKind] = useState<keyof Ways>("cli");
  return (
    <div class="as-code">
      <div class="segments" role="group" aria-label="Language">
        {kinds.map(([name, label]) => (
          <button type="button" key={name} aria-pressed={kind === name} onClick={() => setKind(name)}>
            {label}
          </button>
        ))}
      </div>
      {!hidesPayloads && (
        <>
          <p class="muted">Start another run with this input</p>
          <Code text={startWays(run.name, run.input)[kind]} label="Start another run" />
        </>
      )}
      <p class="muted">Read this run</p>
      <Code text={readWays(run.runId)[kind]} label="Read this run" />
      {typeof awaited === "string" && (
        <>
          <p class="muted">Send the signal it waits for</p>
          <Code text={signalWays(run.runId, awaited, {})[kind]} label="Send the signal" />
        </>
      )}
    </div>
  );
}
