/** Partition keys that are held or waited for: who holds each, and how many runs are behind it. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import { pageAt, query } from "../api/router.js";
import type { Keys, PartitionKey } from "../api/types.js";
import { number } from "../format/number.js";
import { Code } from "../parts/copy.js";
import { Await, Empty, NextPage, Page } from "../parts/page.js";

const freshMs = 5_000;
const maxCounted = 1_000;

export function KeysPage(): JSX.Element {
  const cursor = query.value.get("cursor") ?? undefined;
  const loaded = usePolled(
    `keys ${cursor ?? ""}`,
    (signal) => call<Keys>("v1/keys", { signal, query: { cursor } }),
    () => freshMs,
  );
  return (
    <Page title="Keys">
      <section class="panel flush" aria-label="Keys">
        <Await loaded={loaded} lines={8}>
          {({ keys, cursor: next }) => (
            <>
              {keys.length === 0 && next === null ? (
                <Empty title="No key is held">
                  <p>Runs with the same partition key execute one at a time, in the order of their start.</p>
                  <Code
                    text={'await pawl.start("charge", input, { partitionKey: `customer-${id}` });'}
                    label="Start with a partition key"
                  />
                </Empty>
              ) : (
                <Table keys={keys} />
              )}
              <NextPage href={next && pageAt("keys", { cursor: next })}>More</NextPage>
            </>
          )}
        </Await>
      </section>
    </Page>
  );
}

function Table({ keys }: { keys: readonly PartitionKey[] }): JSX.Element {
  const most = Math.max(1, ...keys.map(({ waiting }) => waiting));
  return (
    <div class="table-room">
      <table class="wide" aria-label="Partition keys">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Held by</th>
            <th scope="col">Next in line</th>
            <th scope="col" class="shares-cell">
              Share
            </th>
            <th scope="col" class="right">
              Waiting
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map(({ key, holder, waiting, first }) => (
            <tr key={key}>
              <td class="message-cell">
                <code title={key}>{key}</code>
              </td>
              <td class="nowrap">
                {holder === null ? (
                  <span class="muted">nobody</span>
                ) : (
                  <>
                    <RunLink run={holder} /> <span class="muted">{holder.phase.replaceAll("_", " ")}</span>
                  </>
                )}
              </td>
              <td class="nowrap">
                {first === null ? <span class="muted">–</span> : <RunLink run={first} />}
              </td>
              <td class="shares-cell">
                <span class="meter" aria-hidden="true">
                  <span style={{ width: `${(waiting / most) * 100}%` }} />
                </span>
              </td>
              <td class="right number">
                {number(waiting)}
                {waiting >= maxCounted && "+"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunLink({ run: { runId, name } }: { run: { runId: string; name: string } }): JSX.Element {
  return (
    <a class="run-link" href={pageAt(`runs/${runId}`)}>
      {name} <span class="muted">#{runId}</span>
    </a>
  );
}
