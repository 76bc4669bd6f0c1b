/** The facts of a run, as a list of names and values. */

import type { ComponentChildren, JSX } from "preact";
import { pageAt } from "../api/router.js";
import type { Run } from "../api/types.js";
import { CopyableCode } from "../parts/copy.js";
import { Time, Took } from "../parts/time.js";

export function Facts({ run }: { run: Run }): JSX.Element {
  const facts: [string, ComponentChildren][] = [
    ["Started", <Time at={run.startedAt} />],
    run.completedAt === null
      ? ["Running for", <Took from={run.startedAt} to={null} />]
      : ["Ended", <Time at={run.completedAt} />],
  ];
  if (run.completedAt !== null) facts.push(["Took", <Took from={run.startedAt} to={run.completedAt} />]);
  facts.push([
    "Definition",
    <a href={pageAt(`definitions/${encodeURIComponent(run.name)}`, { version: String(run.version) })}>
      {run.name}@{run.version}
    </a>,
  ]);
  if (run.kind !== null) facts.push(["Kind", run.kind]);
  facts.push(["Queue", <a href={pageAt("runs", { queue: run.queue })}>{run.queue}</a>]);
  if (run.priority !== 0) facts.push(["Priority", String(run.priority)]);
  if (run.kind === "machine" && run.step !== null) facts.push(["Step", <code>{run.step}</code>]);
  if (run.attempt > 0) facts.push(["Attempt", String(run.attempt + 1)]);
  if (run.status === "running" && run.eligibleAt !== null) facts.push(["Due", <Time at={run.eligibleAt} />]);
  if (run.schedule !== null) {
    const { name, at } = run.schedule;
    facts.push([
      "Schedule",
      <>
        <a href={pageAt(`schedules/${encodeURIComponent(name)}`)}>{name}</a>, tick of <Time at={at} />
      </>,
    ]);
  }
  if (run.parentId !== null)
    facts.push(["Parent", <a href={pageAt(`runs/${run.parentId}`)}>run {run.parentId}</a>]);
  if (run.rerunOf !== null)
    facts.push(["Rerun of", <a href={pageAt(`runs/${run.rerunOf}`)}>run {run.rerunOf}</a>]);
  if (run.rerunAs !== null)
    facts.push(["Repeated by", <a href={pageAt(`runs/${run.rerunAs}`)}>run {run.rerunAs}</a>]);
  if (run.correlationKey !== null)
    facts.push([
      "Correlation key",
      <a href={pageAt("runs", { correlationKey: run.correlationKey })}>{run.correlationKey}</a>,
    ]);
  for (const [name, value] of Object.entries(run.tags))
    facts.push([`Tag ${name}`, <a href={pageAt("runs", { [`tag.${name}`]: value })}>{value}</a>]);
  if (run.deadlineAt !== null) facts.push(["Deadline", <Time at={run.deadlineAt} />]);
  if (run.originRunId !== run.runId && run.originRunId !== run.rerunOf)
    facts.push(["First run", <a href={pageAt(`runs/${run.originRunId}`)}>run {run.originRunId}</a>]);
  if (run.traceId !== null) facts.push(["Trace", <CopyableCode text={run.traceId} />]);
  if (run.idempotencyKey !== null) facts.push(["Idempotency key", <code>{run.idempotencyKey}</code>]);
  if (run.expiresAt !== null) facts.push(["Kept until", <Time at={run.expiresAt} />]);
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
