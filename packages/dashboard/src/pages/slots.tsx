/** The slots of a concurrency limit: who holds them, and how many runs wait, by key. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Slots } from "../api/types.js";
import { number } from "../format/number.js";
import { Await, Empty, NextPage, Panel } from "../parts/page.js";

const freshMs = 5_000;
const maxCounted = 1_000;

export function SlotsPanel({ limit }: { limit: string }): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `slots ${limit} ${cursor ?? ""}`,
    (signal) => call<Slots>(`v1/limits/${encodeURIComponent(limit)}/slots`, { signal, query: { cursor } }),
    () => freshMs,
  );
  return (
    <Panel title={`Who holds ${limit}`} flush note={<a href={pageAt("limits")}>Close</a>}>
      <Await loaded={loaded} lines={3}>
        {({ keys, cursor: next }) => (
          <>
            {keys.length === 0 ? (
              <Empty title="No run holds a slot, and none waits for one" />
            ) : (
              <div class="table-room">
                <table aria-label={`Who holds ${limit}`}>
                  <thead>
                    <tr>
                      <th scope="col">Key</th>
                      <th scope="col">Runs that execute</th>
                      <th scope="col" class="right">
                        Held
                      </th>
                      <th scope="col" class="right">
                        Waiting
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {keys.map(({ key, held, waiting, holders }) => (
                      <tr key={key ?? ""}>
                        <td>{key === null ? <span class="muted">no key</span> : <code>{key}</code>}</td>
                        <td>
                          <span class="served">
                            {holders.map(({ runId, name }) => (
                              <a key={runId} href={pageAt(`runs/${runId}`)}>
                                {name} <span class="muted">#{runId}</span>
                              </a>
                            ))}
                          </span>
                        </td>
                        <td class="right number">{number(held)}</td>
                        <td class="right number">
                          {number(waiting)}
                          {waiting >= maxCounted && "+"}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
            <NextPage href={next && pageAt("limits", { limit, cursor: next })}>More</NextPage>
          </>
        )}
      </Await>
    </Panel>
  );
}
