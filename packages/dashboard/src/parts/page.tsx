/** The parts every page is made of: heading, panels, skeletons, empty states, and problems. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ApiProblem } from "../api/client.js";
import type { Loaded } from "../api/resource.js";

export function Page({
  title,
  actions,
  children,
  heading,
}: {
  title: string;
  heading?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  useEffect(() => {
    document.title = `${title} · Pawl`;
  }, [title]);
  return (
    <>
      <header class="page-header">
        <h1 tabIndex={-1}>{heading ?? title}</h1>
        <div class="buttons">{actions}</div>
      </header>
      {children}
    </>
  );
}

export function Panel({
  title,
  note,
  children,
  flush = false,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
  /** Without room around the content: for tables. */
  flush?: boolean;
}): JSX.Element {
  return (
    <section class={flush ? "panel flush" : "panel"} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span class="muted">{note}</span>}
      </header>
      {children}
    </section>
  );
}

/** Grey lines where data will stand. */
export function Skeleton({ lines = 5 }: { lines?: number }): JSX.Element {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={`skeleton-line w${index % 4}`} />
      ))}
    </div>
  );
}

export function Problem({ problem, retry }: { problem: ApiProblem; retry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <div>
        <strong>{problem.status === 0 ? "No answer from the server" : problem.code}</strong>
        <p>{problem.message}</p>
        {problem.instance !== null && <p class="muted">Request {problem.instance}: find it in the log.</p>}
      </div>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** Shows the data, a skeleton before they are there, and what went wrong. */
export function Await<Data>({
  loaded,
  lines,
  children,
}: {
  loaded: Loaded<Data>;
  lines?: number;
  children: (data: Data) => ComponentChildren;
}): JSX.Element {
  const { data, problem, reload } = loaded;
  return (
    <>
      {problem !== undefined && <Problem problem={problem} retry={reload} />}
      {data !== undefined ? children(data) : problem === undefined && <Skeleton lines={lines ?? 5} />}
    </>
  );
}

/** The link to the next page of a list; nothing on the last page. */
export function NextPage({ href, children }: { href: string | null; children: string }): JSX.Element | null {
  if (href === null) return null;
  return (
    <nav class="paging" aria-label="Pages">
      <span />
      <a class="button" href={href}>
        {children}
      </a>
    </nav>
  );
}
