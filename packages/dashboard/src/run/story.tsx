/** The story of a run as a waterfall, with the stories of the children that somebody opened. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { now } from "../api/clock.js";
import { usePolled } from "../api/resource.js";
import { plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { Empty, Panel } from "../parts/page.js";
import { type RunStory, readStory } from "./read.js";
import { RerunButton } from "./rerun.js";
import { inline, type Row, rowsOfRun, rowsOfSteps } from "./rows.js";
import { Waterfall } from "./waterfall.js";

/** Children that are open at once. The one that was opened first closes. */
const maxOpen = 10;
const runningMs = 3_000;

export function Story({ story }: { story: RunStory }): JSX.Element {
  const { run, steps } = story;
  const [opened, setOpened] = useState<readonly string[]>([]);
  const toggle = (runId: string): void =>
    setOpened((before) =>
      before.includes(runId) ? before.filter((one) => one !== runId) : [...before, runId].slice(-maxOpen),
    );
  const { data: stories = [] } = usePolled(
    `inline ${opened.join(" ")}`,
    (aborted) => Promise.all(opened.map((runId) => readStory(runId, aborted))),
    (read) => (read?.some((one) => one.run.status === "running") === true ? runningMs : null),
  );
  const fromMs = Date.parse(run.startedAt);
  const endMs = run.completedAt === null ? now.value : Date.parse(run.completedAt);
  const isJournal = hasJournal(story);
  const rows = useMemo(() => {
    const inside = new Map(stories.map((one) => [one.run.runId, rowsOf(one, now.peek())]));
    return inline(rowsOf(story, endMs), inside, opened);
  }, [story, stories, opened, endMs]);
  const last = rows.reduce((latest, { toMs }) => Math.max(latest, toMs), endMs);
  return (
    <Panel
      title={isJournal ? "Steps" : "Timeline"}
      note={`${isJournal ? `${plural(steps.length, "step")} in ` : ""}${duration(last - fromMs)}`}
      flush
    >
      {rows.length === 0 ? (
        <Empty title="No step has begun yet" />
      ) : (
        <Waterfall
          rows={rows}
          fromMs={fromMs}
          toMs={last}
          opened={opened}
          onToggle={toggle}
          actionsOf={(row: Row) =>
            isJournal && run.status !== "running" && row.depth === 0 ? (
              <RerunButton run={run} steps={[row.name]} from={row.name} />
            ) : null
          }
        />
      )}
    </Panel>
  );
}

const hasJournal = ({ run, steps }: RunStory): boolean => run.kind === "workflow" || steps.length > 0;

function rowsOf(story: RunStory, nowMs: number): Row[] {
  const { run, steps, children } = story;
  return hasJournal(story) && steps.length > 0
    ? rowsOfSteps(steps, run, nowMs)
    : hasJournal(story)
      ? []
      : rowsOfRun(run, children.runs, nowMs);
}
