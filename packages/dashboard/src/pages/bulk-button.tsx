/**
 * One action on all runs that the filters match: the server counts them first, and nothing happens
 * until the number is typed.
 */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiProblem, call } from "../api/client.js";
import { now } from "../api/clock.js";
import { goTo, pageAt } from "../api/router.js";
import { cli } from "../format/command.js";
import { number, plural } from "../format/number.js";
import { Button } from "../parts/button.js";
import { Dialog, Field } from "../parts/dialog.js";
import { toBulkFilter, toFlags } from "./filters.js";

const actions = [
  ["rerun", "Rerun"],
  ["cancel", "Cancel"],
  ["pause", "Pause"],
  ["resume", "Resume"],
  ["delete", "Delete"],
] as const;

type Action = (typeof actions)[number][0];

export function BulkButton({ address }: { address: URLSearchParams }): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button scope="admin" onClick={() => setOpen(true)}>
        Act on all of these…
      </Button>
      {isOpen && <BulkDialog address={address} onClose={() => setOpen(false)} />}
    </>
  );
}

function BulkDialog(props: { address: URLSearchParams; onClose: () => void }): JSX.Element {
  const [where] = useState(() => toBulkFilter(props.address, now.peek()));
  const [action, setAction] = useState<Action>(where["status"] === "running" ? "cancel" : "rerun");
  const [count, setCount] = useState<number | string | null>(null);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    // The answer for a former action may come late: it would be the number of other runs.
    let isFormer = false;
    const show = (answer: number | string): void => {
      if (!isFormer) setCount(answer);
    };
    setCount(null);
    call<{ count: number }>("v1/bulk", { method: "POST", body: { action, where, dryRun: true } }).then(
      (preview) => show(preview.count),
      (error: unknown) => show(error instanceof ApiProblem ? error.message : String(error)),
    );
    return () => {
      isFormer = true;
    };
  }, [action]);
  const flags = toFlags(where);
  return (
    <Dialog
      title="Act on all runs that match the filters"
      verb={typeof count === "number" ? `${labelOf(action)} ${plural(count, "run")}` : labelOf(action)}
      isDangerous={action === "cancel" || action === "delete"}
      {...(flags === null ? {} : { command: cli("runs", "bulk", action, ...flags) })}
      onClose={props.onClose}
      act={async () => {
        if (typeof count !== "number" || typed.replaceAll(",", "").trim() !== String(count))
          throw new SyntaxError(
            `Type the number of runs${typeof count === "number" ? `: ${number(count)}` : ""}`,
          );
        const { id } = await call<{ id: string }>("v1/bulk", { method: "POST", body: { action, where } });
        goTo(pageAt(`bulk/${id}`));
      }}
    >
      <Field label="Action">
        <select
          name="action"
          value={action}
          onChange={(event) => setAction(event.currentTarget.value as Action)}
        >
          {actions.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </Field>
      <p aria-live="polite">
        {count === null
          ? "Counting the runs…"
          : typeof count === "string"
            ? count
            : `${plural(count, "run")} ${count === 1 ? "matches" : "match"} now. Runs that start later do not belong to it.`}
      </p>
      <Field label="Type the number of runs to confirm">
        <input
          name="count"
          inputMode="numeric"
          autocomplete="off"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </Field>
    </Dialog>
  );
}

const labelOf = (action: Action): string => actions.find(([value]) => value === action)?.[1] ?? action;
