/** The form that adds or changes a limit, for all workers at once. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.js";
import type { Limit } from "../api/types.js";
import { cli } from "../format/command.js";
import { Dialog, Field } from "./dialog.js";

/** The fields of the dialog. An empty text sets no such limit. */
export interface Draft {
  readonly name: string;
  readonly allowed: string;
  readonly period: string;
  readonly burst: string;
  readonly concurrent: string;
  readonly isNew: boolean;
}

export const newDraft: Draft = {
  name: "",
  allowed: "10",
  period: "1s",
  burst: "",
  concurrent: "",
  isNew: true,
};

const textOf = (value: number | null): string => (value === null ? "" : String(value));

export const draftOf = ({ name, allowed, periodMs, burst, concurrent }: Limit): Draft => ({
  name,
  allowed: textOf(allowed),
  period: periodMs === null ? "" : periodMs % 1_000 === 0 ? `${periodMs / 1_000}s` : `${periodMs}ms`,
  // The default follows the rate.
  burst: burst === null || burst === Math.max(1, allowed ?? 0) ? "" : String(burst),
  concurrent: textOf(concurrent),
  isNew: false,
});

const fields = [
  ["allowed", "Allowed", "number"],
  ["period", "per period", "text"],
  ["burst", "Burst", "number"],
  ["concurrent", "At once", "number"],
] as const;

export function LimitDialog(props: { draft: Draft; onClose: () => void; onDone: () => void }): JSX.Element {
  const { isNew } = props.draft;
  const [draft, setDraft] = useState(props.draft);
  const { name } = draft;
  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  const given = fields.filter(([field]) => draft[field] !== "");
  return (
    <Dialog
      title={isNew ? "Add a limit" : `Change the limit ${name}`}
      verb={isNew ? "Add the limit" : "Change the limit"}
      command={cli(
        "limits",
        "set",
        name === "" ? "name" : name,
        ...given.flatMap(([field]) => [`--${field}`, draft[field]]),
      )}
      onClose={props.onClose}
      act={async () => {
        const body = Object.fromEntries(
          given.map(([field, , type]) => [field, type === "number" ? Number(draft[field]) : draft[field]]),
        );
        await call(`v1/limits/${encodeURIComponent(name)}`, { method: "PUT", body });
        props.onDone();
      }}
    >
      <p>It holds for all workers at once. Give a rate, how many runs execute at once, or both.</p>
      {isNew && (
        <Field label="Name">
          <input
            name="name"
            required
            autofocus
            spellcheck={false}
            value={name}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        </Field>
      )}
      <div class="pair">
        {fields.map(([field, label, type]) => (
          <Field key={field} label={label}>
            <input
              name={field}
              inputMode={type === "number" ? "decimal" : "text"}
              spellcheck={false}
              value={draft[field]}
              onInput={(event) => set({ [field]: event.currentTarget.value })}
            />
          </Field>
        ))}
      </div>
    </Dialog>
  );
}
