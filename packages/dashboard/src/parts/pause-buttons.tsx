/** Pausing and resuming: a run, a queue, or a definition. */

import type { JSX } from "preact";
import { cli } from "../format/command.js";
import { ActButton } from "./act-button.js";

/** The path in the API and the words in a terminal, the same for all three. */
const kinds = {
  run: { path: "runs", word: "run", consequence: "It finishes its present step and then stays." },
  queue: {
    path: "queues",
    word: "queue",
    consequence:
      "Running steps finish. No worker begins a step of its runs, and nobody receives its messages.",
  },
  definition: {
    path: "definitions",
    word: "definition",
    consequence: "Running steps finish. No worker begins a step of its runs, whichever version they have.",
  },
} as const;

export function PauseButton(props: {
  kind: keyof typeof kinds;
  name: string;
  isPaused: boolean;
  isPrimary?: boolean;
  onDone: () => void;
}): JSX.Element {
  const { kind, name, isPaused, isPrimary = false, onDone } = props;
  const { path, word, consequence } = kinds[kind];
  const verb = isPaused ? "Resume" : "Pause";
  return (
    <ActButton
      label={`${verb}…`}
      scope={kind === "run" ? "write" : "admin"}
      description={`${verb} ${name}`}
      title={`${verb} the ${word} ${name}?`}
      verb={`${verb} the ${word}`}
      isPrimary={isPrimary}
      consequence={isPaused ? "Workers go on with it at once." : consequence}
      asksReason={!isPaused}
      command={(reason) =>
        cli(path, verb.toLowerCase(), name, ...(reason === "" || isPaused ? [] : ["--reason", reason]))
      }
      path={`v1/${path}/${encodeURIComponent(name)}/${verb.toLowerCase()}`}
      body={(reason) => (isPaused || reason === "" ? {} : { reason })}
      onDone={onDone}
    />
  );
}
