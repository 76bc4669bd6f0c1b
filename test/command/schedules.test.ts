import { connect, job, type Schedule, type ScheduleDetail, serve } from "pawl";
import { afterAll, describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { pawl, pawlJson } from "./pawl.js";

const { url } = await testDatabase();
const double = job({ name: "double", run: (_ctx, n: number) => n * 2 });
const worker = serve([double], { url });
await worker.ready;
const client = connect(url);
afterAll(async () => {
  await worker.stop();
  await client.close();
});

describe("pawl schedules", () => {
  it("sets, lists, shows, pauses, resumes, triggers, backfills and removes a schedule", async () => {
    expect((await pawl(["schedules", "list"], { url })).stdout).toBe("no schedules\n");
    const nightly = [
      "--cron",
      "30 3 * * *",
      "--time-zone",
      "Europe/Berlin",
      "--start",
      "double",
      "--input",
      "21",
    ];
    const set = await pawl(["schedules", "set", "nightly", ...nightly, "--catch-up", "none"], { url });
    expect(set.stderr).toBe("");
    expect(set.stdout).toMatch(/^set the schedule nightly\n/);
    expect(set.stdout).toMatch(/when +30 3 \* \* \* Europe\/Berlin\n/);
    expect(set.stdout.match(/T0[12]:30:00\.000Z/g)).toHaveLength(5);
    const again = await pawl(["schedules", "set", "nightly", ...nightly, "--catch-up", "none"], { url });
    expect(again.stdout).toMatch(/^nothing changed in the schedule nightly\n/);

    const { schedules } = await pawlJson<{ schedules: Schedule[] }>(["schedules", "list"], { url });
    expect(schedules).toMatchObject([
      { name: "nightly", definition: "double", catchUp: "none", paused: false },
    ]);
    expect((await pawl(["schedules", "pause", "nightly"], { url })).stdout).toBe(
      "paused the schedule nightly\n",
    );
    expect((await pawl(["schedules", "list"], { url })).stdout).toMatch(/nightly .* paused/);
    const shown = await pawlJson<ScheduleDetail>(["schedules", "show", "nightly"], { url });
    expect(shown).toMatchObject({ paused: true, input: 21, nextAt: null, problem: null });
    expect(shown.next).toHaveLength(5);

    const { runId } = await pawlJson<{ runId: string }>(["schedules", "trigger", "nightly"], { url });
    expect(await client.result(runId)).toBe(42);
    const fill = ["schedules", "backfill", "nightly", "--from", "2020-01-01", "--to", "2020-01-04"];
    expect((await pawl(fill, { url })).stdout).toBe("started 3 runs; 0 ticks had a run before\n");
    expect((await pawl(fill, { url })).stdout).toBe("started 0 runs; 3 ticks had a run before\n");
    expect((await pawl(["schedules", "resume", "nightly"], { url })).stdout).toBe(
      "resumed the schedule nightly\n",
    );
    expect((await client.schedules.get("nightly")).paused).toBe(false);
    expect((await pawl(["schedules", "remove", "nightly"], { url })).stdout).toBe(
      "removed the schedule nightly\n",
    );
    expect((await pawl(["schedules", "remove", "nightly"], { url })).stdout).toBe(
      "there was no schedule nightly\n",
    );
  });

  it("leaves a paused schedule paused unless it is told otherwise", async () => {
    const set = (...more: string[]) =>
      pawlJson<ScheduleDetail>(["schedules", "set", "rest", "--every", "1h", "--start", "double", ...more], {
        url,
      });
    expect((await set("--paused")).paused).toBe(true);
    expect((await set("--overlap", "allow")).paused).toBe(true);
    expect((await set("--no-paused")).paused).toBe(false);
    expect((await set()).paused).toBe(false);
  });

  it("explains a wrong expression and an unknown name", async () => {
    const wrong = await pawl(["schedules", "set", "x", "--cron", "0 0 30 2 *", "--start", "double"], { url });
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toContain("never fires");
    const unknown = await pawl(["schedules", "show", "nobody"], { url });
    expect(unknown.code).not.toBe(0);
    expect(unknown.stderr).toContain('there is no schedule "nobody"');
  });
});
