/**
 * The waterfall of a run: a row for each step, with a bar for its time, its attempts and its error.
 * Idle time is folded (`fold.ts`). Draws only the rows in view, so that ten thousand scroll well.
 */

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { pageAt } from "../api/router.js";
import { plural } from "../format/number.js";
import { duration } from "../format/time.js";
import { icons } from "../parts/icons.js";
import { Json } from "../parts/json.js";
import { Time } from "../parts/time.js";
import { ErrorView } from "./error-view.js";
import { foldIdle, type Scale } from "./fold.js";
import type { Row } from "./rows.js";

const rowPx = 34;
const roomPx = 560;
/** Rows drawn above and below the visible ones. */
const spare = 10;

/** More bands than this make a picture of bands. */
const maxFolds = 100;
/** A band narrower than this has no room for its label. */
const labelShare = 0.045;

interface Props {
  readonly rows: readonly Row[];
  readonly fromMs: number;
  readonly toMs: number;
  /** The runs whose rows stand below their own. */
  readonly opened: readonly string[];
  readonly onToggle: (runId: string) => void;
  /** Buttons for the row that somebody chose. */
  readonly actionsOf: (row: Row) => ComponentChildren;
}

export function Waterfall({ rows, fromMs, toMs, opened, onToggle, actionsOf }: Props): JSX.Element {
  const [chosen, setChosen] = useState<string | null>(null);
  const [scrolled, setScrolled] = useState(0);
  const scale = useMemo(() => foldIdle(rows, fromMs, toMs), [rows, fromMs, toMs]);
  const isLong = rows.length * rowPx > roomPx;
  const first = isLong ? Math.max(0, Math.floor(scrolled / rowPx) - spare) : 0;
  const last = isLong ? Math.ceil((scrolled + roomPx) / rowPx) + spare : rows.length;
  const detail = rows.find(({ key }) => key === chosen);
  return (
    <div class="waterfall">
      <Axis scale={scale} fromMs={fromMs} toMs={toMs} />
      <div
        class={isLong ? "rows long" : "rows"}
        onScroll={(event) => isLong && setScrolled(event.currentTarget.scrollTop)}
      >
        <Folds scale={scale} heightPx={rows.length * rowPx} />
        <ol style={{ height: `${rows.length * rowPx}px`, paddingTop: `${first * rowPx}px` }}>
          {rows.slice(first, last).map((row) => (
            <Line
              key={row.key}
              row={row}
              scale={scale}
              isChosen={row.key === chosen}
              isOpen={row.runId !== null && opened.includes(row.runId)}
              onChoose={() => setChosen(row.key === chosen ? null : row.key)}
              onToggle={onToggle}
            />
          ))}
        </ol>
      </div>
      {detail !== undefined && <Detail row={detail} actions={actionsOf(detail)} />}
    </div>
  );
}

/** The bands behind all rows. */
function Folds({ scale, heightPx }: { scale: Scale; heightPx: number }): JSX.Element | null {
  if (scale.folds.length === 0) return null;
  return (
    <div class="line folds" aria-hidden="true" style={{ height: `${heightPx}px` }}>
      <span />
      <div class="track">
        {scale.folds.slice(0, maxFolds).map((fold) => (
          <span
            key={fold.fromMs}
            class="fold"
            style={{ left: `${fold.left * 100}%`, width: `${(fold.right - fold.left) * 100}%` }}
          />
        ))}
      </div>
      <span />
    </div>
  );
}

/** How long each folded band is; without bands, where the scale begins and ends. */
function Axis({ scale, fromMs, toMs }: { scale: Scale; fromMs: number; toMs: number }): JSX.Element {
  return (
    <div class="axis" aria-hidden="true">
      <span />
      <div class="track">
        {scale.folds.length === 0 && (
          <>
            <span>start</span>
            <span>{duration(toMs - fromMs)}</span>
          </>
        )}
        {scale.folds
          .filter(({ left, right }) => right - left >= labelShare)
          .map((fold) => (
            <span
              key={fold.fromMs}
              class="fold-label"
              style={{ left: `${((fold.left + fold.right) / 2) * 100}%` }}
              title={`${duration(fold.toMs - fold.fromMs)} without work`}
            >
              {duration(fold.toMs - fold.fromMs)}
            </span>
          ))}
      </div>
      <span />
    </div>
  );
}

function Line(props: {
  row: Row;
  scale: Scale;
  isChosen: boolean;
  isOpen: boolean;
  onChoose: () => void;
  onToggle: (runId: string) => void;
}): JSX.Element {
  const { row, scale, isChosen, isOpen, onChoose, onToggle } = props;
  const { runId } = row;
  const left = scale.at(row.fromMs);
  const width = scale.at(row.toMs) - left;
  const took = duration(row.toMs - row.fromMs);
  const tries = row.attempts > 1 ? plural(row.attempts, "attempt") : "";
  const said = row.error !== null ? row.error.message : "";
  const place = besideBar(left, left + width);
  return (
    <li class={`line is-${row.look}`}>
      <div class="line-head" style={{ paddingLeft: `${Math.min(row.depth, 6) * 16}px` }}>
        {runId !== null && (
          <button
            type="button"
            class="quiet twist"
            aria-expanded={isOpen}
            aria-label={`Steps of run ${runId}`}
            onClick={() => onToggle(runId)}
          >
            {icons.twist}
          </button>
        )}
        <button type="button" class="line-name" aria-expanded={isChosen} onClick={onChoose}>
          {icons[row.look]}
          <span class="line-text">{row.name}</span>
          {row.kind !== "run" && <span class="kind">{row.kind}</span>}
        </button>
      </div>
      <div class="track" onClick={onChoose}>
        <span
          class={`bar${row.isIdle ? " idle" : ""}${row.isPending ? " pending" : ""}`}
          style={{ left: `${left * 100}%`, width: `max(4px, ${width * 100}%)` }}
        />
        {said !== "" && (
          <span class={`said ${place.name}`} style={place.style} title={said}>
            {said}
          </span>
        )}
      </div>
      <span class="line-end">
        {tries !== "" && <span class="tries">{tries}</span>}
        {runId === null ? null : (
          <a href={pageAt(`runs/${runId}`)} aria-label={`Show run ${runId}`}>
            #{runId}
          </a>
        )}
        <span class="number">{took}</span>
      </span>
    </li>
  );
}

/** Where a text stands: after its bar, before it, or within, wherever there is most room. */
function besideBar(left: number, right: number): { name: string; style: Record<string, string> } {
  if (1 - right >= 0.25) return { name: "after", style: { left: `${right * 100}%` } };
  if (left >= 0.25) return { name: "before", style: { right: `${(1 - left) * 100}%` } };
  return { name: "within", style: { left: `${left * 100}%`, right: `${(1 - right) * 100}%` } };
}

/** The row that somebody chose. */
function Detail({ row, actions }: { row: Row; actions: ComponentChildren }): JSX.Element {
  return (
    <div class="detail">
      <header class="detail-head">
        <h3>{row.name}</h3>
        {actions}
      </header>
      <p class="muted">
        Began <Time at={row.startedAt} />
        {row.completedAt !== null && (
          <>
            , ended <Time at={row.completedAt} />
          </>
        )}
        {row.dueAt !== null && (
          <>
            , continues <Time at={row.dueAt} />
          </>
        )}
        , {plural(row.attempts, "attempt")}
      </p>
      {row.error !== null && <ErrorView error={row.error} />}
      {row.output !== undefined && <Json value={row.output} label={`Output of ${row.name}`} />}
    </div>
  );
}
