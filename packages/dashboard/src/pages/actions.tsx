/** The action log: who has done what, and when. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Action } from "../api/types.js";
import { preview } from "../format/json.js";
import { Await, Empty, NextPage, Page } from "../parts/page.js";
import { Time } from "../parts/time.js";

const freshMs = 10_000;

export function ActionsPage(): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `actions ${cursor ?? ""}`,
    (signal) =>
      call<{ actions: readonly Action[]; cursor: string | null }>("v1/actions", {
        signal,
        query: { cursor, limit: 50 },
      }),
    () => freshMs,
  );
  return (
    <Page title="Action log">
      <section class="panel flush" aria-label="Action log">
        <Await loaded={loaded} lines={10}>
          {({ actions, cursor: next }) => (
            <>
              {actions.length === 0 ? (
                <Empty title="Nobody has done anything yet">
                  <p>Cancelled, signalled, paused and repeated runs appear here, with who did it.</p>
                </Empty>
              ) : (
                <Table actions={actions} />
              )}
              <NextPage href={next && pageAt("actions", { cursor: next })}>Older</NextPage>
            </>
          )}
        </Await>
      </section>
    </Page>
  );
}

function Table({ actions }: { actions: readonly Action[] }): JSX.Element {
  return (
    <div class="table-room">
      <table aria-label="Actions, newest first">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">Action</th>
            <th scope="col">Target</th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          {actions.map(({ id, at, who, from, action, target, detail }) => (
            <tr key={id}>
              <td class="nowrap">
                <Time at={at} />
              </td>
              <td class="nowrap">
                {who} <span class="muted first-cell">{from}</span>
              </td>
              <td class="nowrap">
                <code>{action}</code>
              </td>
              <td class="nowrap">
                <Target action={action} target={target} />
              </td>
              <td class="message-cell">{detail !== null && <code>{preview(detail, 120)}</code>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Target({ action, target }: { action: string; target: string | null }): JSX.Element {
  if (target === null) return <span class="muted">–</span>;
  const isRun = /^(runs?\.|signal)/.test(action) && /^\d+$/.test(target);
  return isRun ? <a href={pageAt(`runs/${target}`)}>#{target}</a> : <>{target}</>;
}
