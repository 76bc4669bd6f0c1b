import { once } from "node:events";
import { connect as connectSocket } from "node:net";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  claim,
  database,
  newClaim,
  nextQueue,
  open,
  pawl,
  post,
  register,
  seen,
  setLockTimeout,
  sql,
  start,
  url,
  waitingClaim,
} from "../../support/http/worker-protocol.js";
import { until } from "../../support/until.js";

let queue = "";
beforeEach(() => {
  queue = nextQueue();
});

describe("a claim that waits", () => {
  it("is answered as soon as a run is started, with that run", async () => {
    await register(`a-${queue}`, queue);
    const claimed = await waitingClaim(`a-${queue}`, queue, { waitSeconds: 20 });
    const runId = await start(queue, { n: 1 });
    expect((await claimed.answer).body).toMatchObject({
      runs: [{ runId, name: "work", input: expect.stringContaining("n") as string }],
    });
  });

  it("goes to who came first, and wakes the next if there is more", async () => {
    for (const id of ["a", "b", "c"]) await register(`${id}-${queue}`, queue);
    const claims = [];
    for (const id of ["a", "b", "c"]) {
      claims.push(await waitingClaim(`${id}-${queue}`, queue, { waitSeconds: 20 }));
    }
    const runIds = await pawl.startMany("work", [
      { input: 1, version: 1, queue },
      { input: 2, version: 1, queue },
      { input: 3, version: 1, queue },
    ]);
    for (const [index, { runId }] of runIds.entries()) {
      expect((await claims[index]!.answer).body.runs).toMatchObject([{ runId }]);
    }
  });

  it("finds what other processes start, without being told", async () => {
    await register(`a-${queue}`, queue);
    const claimed = await waitingClaim(`a-${queue}`, queue, { waitSeconds: 20 });
    await sql("select id from start_runs(array[($1)::new_run], array['null'], false, true, null, null)", [
      `(work,1,job,${queue},,,,,,,,,,,,,,,,,)`,
    ]);
    expect((await claimed.answer).body.runs).toHaveLength(1);
  });

  it("comes back with nothing when its time is over", async () => {
    await register(`a-${queue}`, queue);
    expect(await claim(`a-${queue}`, queue, { waitSeconds: 0.05 })).toEqual({
      status: 200,
      body: { runs: [], more: false },
    });
  });

  it("comes back at once when the worker asks for that", async () => {
    await register(`a-${queue}`, queue);
    const claimId = newClaim();
    const claimed = await waitingClaim(`a-${queue}`, queue, { waitSeconds: 30, claimId });
    await post("claim/end", { workerId: `a-${queue}`, claimId });
    expect((await claimed.answer).body).toEqual({ runs: [], more: false });
  });

  it("of somebody who has lost his lease does not keep the next in line from work", async () => {
    await register(`a-${queue}`, queue);
    await register(`b-${queue}`, queue);
    const dead = await waitingClaim(`a-${queue}`, queue, { waitSeconds: 3 });
    await sql("update workers set seen_at = seen_at - interval '1 hour' where id = $1", [`a-${queue}`]);
    const alive = claim(`b-${queue}`, queue, { waitSeconds: 20 });
    const runId = await start(queue);
    expect((await alive).body.runs).toMatchObject([{ runId }]);
    expect((await dead.answer).body.runs).toEqual([]);
  });

  it("of a socket that is gone claims nothing", async () => {
    await register(`a-${queue}`, queue);
    await register(`b-${queue}`, queue);
    const leaving = new AbortController();
    const { signal } = leaving;
    const dropped = await waitingClaim(`a-${queue}`, queue, { waitSeconds: 20, signal });
    const next = await waitingClaim(`b-${queue}`, queue, { waitSeconds: 20 });
    const before = seen.gone;
    leaving.abort();
    await expect(dropped.answer).rejects.toThrow(/abort/);
    await until("the server has noticed", () => seen.gone > before);
    const runId = await start(queue);
    expect((await next.answer).body.runs).toMatchObject([{ runId }]);
  });

  it("of a socket that breaks while the claim is made lets the runs go", async () => {
    await register(`a-${queue}`, queue);
    const holder = await database.connect();
    const runId = await start(queue);
    // This test says how long the claim waits, not the 100 ms after which it would give up.
    await setLockTimeout("1min");
    onTestFinished(() => setLockTimeout("100ms"));
    // The claim has to wait for nothing but this: the row of its worker.
    await holder.query("begin");
    await holder.query("lock table workers in access exclusive mode");
    const claimId = newClaim();
    const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    const body = JSON.stringify({
      workerId: `a-${queue}`,
      claimId,
      queue,
      limit: 1,
      definitions: [{ name: "work", version: 1 }],
      waitSeconds: 20,
    });
    socket.write(
      `POST /v1/workers/claim HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until("the claim waits in the database", async () => {
      const [row] = await sql<{ n: number }>(
        "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%claim%' and datname = current_database()",
      );
      return row!.n > 0;
    });
    const before = seen.gone;
    socket.destroy();
    await until("the server has noticed", () => seen.gone > before);
    await holder.query("commit");
    await until("it is runnable, and was claimed", async () => {
      const [row] = await sql("select status, claim_id::text, attempt from runs where id = $1", [runId]);
      return row!["status"] === "runnable" && row!["claim_id"] === claimId;
    });
    expect(await pawl.runs.get(runId)).toMatchObject({ phase: "runnable", attempt: 0 });
  });
});

describe("a server that closes", () => {
  it("answers the claims that wait at once, and leaves none behind", async () => {
    const closing = await open();
    const at = await closing.listen();
    await register(`a-${queue}`, queue);
    const before = seen.arrived;
    const claims = Array.from({ length: 20 }, () => claim(`a-${queue}`, queue, { waitSeconds: 30, at }));
    await until("all wait", () => seen.arrived === before + 20);
    await closing.close();
    for (const claimed of claims) expect((await claimed).body).toEqual({ runs: [], more: false });
    const runId = await start(queue);
    expect((await claim(`a-${queue}`, queue)).body.runs).toMatchObject([{ runId }]);
  });
});
