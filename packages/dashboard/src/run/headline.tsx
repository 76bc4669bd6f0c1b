/**
 * The answer of `why` as the headline of a run. The sentence is the server's; times in it become
 * relative, runs become links, and names stand out.
 */

import type { ComponentChildren, JSX } from "preact";
import { now } from "../api/clock.js";
import { pageAt } from "../api/router.js";
import type { Why } from "../api/types.js";
import { duration, exactTime } from "../format/time.js";
import { Time } from "../parts/time.js";

const special =
  /(?:\b(at|since|until|ends, at) )?(\d{4}-\d\d-\d\dT[\d:.]+Z)|"([^"\n]{1,200})"|\brun (\d+)\b|`([^`]+)`/g;

export function Headline({ why }: { why: Why }): JSX.Element {
  const own = `run ${why.runId} `;
  const told = (why.text.startsWith(own) ? why.text.slice(own.length) : why.text).replace(
    /^(is|has ended:) /,
    "",
  );
  return <p class="headline">{partsOf(told.slice(0, 1).toUpperCase() + told.slice(1))}.</p>;
}

function partsOf(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(special)) {
    const [all, before, time, name, runId, command] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + all.length;
    if (time !== undefined) parts.push(<Moment before={before} at={Date.parse(time)} />);
    else if (name !== undefined) parts.push(<code>{name}</code>);
    else if (runId !== undefined) parts.push(<a href={pageAt(`runs/${runId}`)}>run {runId}</a>);
    else parts.push(<code>{command}</code>);
  }
  parts.push(text.slice(end));
  return parts;
}

/** "since" a time is for how long, "until" a time is for how much longer. */
function Moment({ before, at }: { before: string | undefined; at: number }): JSX.Element {
  const away = at - now.value;
  const exact = { dateTime: new Date(at).toISOString(), title: exactTime(at) };
  if (before === "since") return <time {...exact}>for {duration(Math.max(1_000, -away))}</time>;
  if (before === "until" && away > 0) return <time {...exact}>for another {duration(away)}</time>;
  return (
    <>
      {before === undefined || before === "at" ? "" : `${before.replace(/,? at$/, "")} `}
      <Time at={at} />
    </>
  );
}
