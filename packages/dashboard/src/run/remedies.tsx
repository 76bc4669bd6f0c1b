/**
 * What an operator can do about a run, as buttons: each asks first and shows the command that does
 * the same. Which ones there are depends on why the run waits.
 */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiProblem, call } from "../api/client.js";
import { pageAt } from "../api/router.js";
import type { Limit, Run, Why } from "../api/types.js";
import { Button } from "../parts/button.js";
import { Dialog, Field } from "../parts/dialog.js";
import { draftOf, LimitDialog } from "../parts/limit-dialog.js";
import { PauseButton } from "../parts/pause-buttons.js";
import { SignalDialog } from "../parts/signal-dialog.js";
import { RerunButton } from "./rerun.js";
import { cancelCommand } from "./commands.js";

interface Props {
  readonly run: Run;
  readonly why: Why;
  /** The steps that a rerun can begin with. */
  readonly steps: readonly string[];
  /** Something was done: read the run again. */
  readonly onDone: () => void;
}

type Open = { readonly kind: "signal"; readonly name: string } | { readonly kind: "cancel" };

export function Remedies({ run, why, steps, onDone }: Props): JSX.Element {
  const [open, setOpen] = useState<Open | null>(null);
  const close = (): void => setOpen(null);
  const isRunning = run.status === "running";
  // The name of the limit comes before the key of its bucket or slots.
  const named = why["rateLimit"] ?? why["concurrency"];
  const [limit = ""] = typeof named === "string" ? named.split(":") : [];
  return (
    <>
      <div class="remedies">
        {textsOf(why["names"]).map((name) => (
          <Button scope="write" class="primary" key={name} onClick={() => setOpen({ kind: "signal", name })}>
            Send “{name}”…
          </Button>
        ))}
        {[...textsOf(why["children"]), ...textsOf(why["holders"])].map((runId) => (
          <a class="button" key={runId} href={pageAt(`runs/${runId}`)}>
            Show run {runId}
          </a>
        ))}
        {typeof why["holder"] === "string" && (
          <a class="button" href={pageAt(`runs/${why["holder"]}`)}>
            Show who holds the key
          </a>
        )}
        {why.reason === "key_taken" && (
          <a class="button" href={pageAt("keys")}>
            Show the keys
          </a>
        )}
        {why.reason === "limit_full" && (
          <a class="button" href={pageAt("limits", { limit })}>
            Show who holds the limit
          </a>
        )}
        {limit !== "" && <RaiseLimit name={limit} onDone={onDone} />}
        {why.reason === "claimable" && (
          <a class="button" href={pageAt("queues")}>
            Show the queue
          </a>
        )}
        {isRunning && textsOf(why["names"]).length === 0 && (
          <Button scope="write" onClick={() => setOpen({ kind: "signal", name: "" })}>
            Send a signal…
          </Button>
        )}
        {!isRunning && <RerunButton run={run} steps={steps} />}
        {isRunning && (
          <PauseButton
            kind="run"
            name={run.runId}
            isPaused={run.paused?.scope === "run"}
            isPrimary={run.paused?.scope === "run"}
            onDone={onDone}
          />
        )}
        {isRunning && run.paused !== null && run.paused.scope !== "run" && (
          <PauseButton
            kind={run.paused.scope}
            name={run.paused.scope === "queue" ? run.queue : run.name}
            isPaused
            isPrimary
            onDone={onDone}
          />
        )}
        {isRunning && (
          <Button scope="write" class="danger" onClick={() => setOpen({ kind: "cancel" })}>
            Cancel…
          </Button>
        )}
      </div>
      {open?.kind === "signal" && (
        <SignalDialog runId={run.runId} name={open.name} onClose={close} onDone={onDone} />
      )}
      {open?.kind === "cancel" && <CancelDialog run={run} onClose={close} onDone={onDone} />}
    </>
  );
}

/** Changes the limit that the run waits for. */
function RaiseLimit({ name, onDone }: { name: string; onDone: () => void }): JSX.Element {
  const [limit, setLimit] = useState<Limit | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const read = async (): Promise<void> => {
    setProblem(null);
    try {
      const { limits } = await call<{ limits: readonly Limit[] }>("v1/limits");
      const found = limits.find((one) => one.name === name);
      if (found === undefined) setProblem(`The server lists no limit ${name}.`);
      else setLimit(found);
    } catch (error) {
      setProblem(error instanceof ApiProblem ? error.message : String(error));
    }
  };
  return (
    <>
      <Button scope="admin" class="primary" onClick={() => void read()}>
        Raise the limit {name}…
      </Button>
      {problem !== null && (
        <p class="refused" role="alert">
          {problem} <a href={pageAt("limits")}>Show the limits</a>
        </p>
      )}
      {limit !== null && (
        <LimitDialog draft={draftOf(limit)} onClose={() => setLimit(null)} onDone={onDone} />
      )}
    </>
  );
}

function CancelDialog({
  run,
  onClose,
  onDone,
}: {
  run: Run;
  onClose: () => void;
  onDone: () => void;
}): JSX.Element {
  const [reason, setReason] = useState("");
  const [cascade, setCascade] = useState(false);
  return (
    <Dialog
      title={`Cancel run ${run.runId} of ${run.name}?`}
      verb="Cancel the run"
      isDangerous
      command={cancelCommand(run.runId, reason, cascade)}
      onClose={onClose}
      act={async () => {
        await call<{ cancelled: number }>(`v1/runs/${run.runId}`, {
          method: "DELETE",
          query: { reason, cascade: cascade ? true : undefined },
        });
        onDone();
      }}
    >
      <p>The run ends at once and for good. Pawl undoes nothing that its steps have done.</p>
      <Field label="Reason" hint="Optional. Recorded with the run.">
        <input
          name="reason"
          autofocus
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </Field>
      <label class="check">
        <input
          type="checkbox"
          name="cascade"
          checked={cascade}
          onChange={(event) => setCascade(event.currentTarget.checked)}
        />
        Cancel all its descendants too
      </label>
    </Dialog>
  );
}

const maxShown = 6;

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string").slice(0, maxShown) : [];
}
