import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { visitShop } from "./visit.js";

const { visit, runs, pawl } = await visitShop();

describe("on the dashboard an operator", () => {
  it("sends a signal by a form, and the run continues", async () => {
    const page = await visit(`/runs/${runs.order}`);
    await page.getByRole("button", { name: "Send “paid”…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Payload").fill('{"euros":');
    await dialog.getByRole("button", { name: "Send the signal" }).click();
    await dialog.getByText("The payload is not JSON").waitFor();
    await dialog.getByLabel("Payload").fill('{"euros":25}');
    expect(await dialog.getByLabel("The same in a terminal").textContent()).toBe(
      `npx pawl runs signal ${runs.order} paid '{"euros":25}'`,
    );
    await dialog.getByRole("button", { name: "Send the signal" }).click();
    expect(await pawl.result(runs.order)).toEqual({ item: "ratchet", euros: 25 });
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Completed/)
      .waitFor();
  });

  it("cancels a run only after a confirmation", async () => {
    const page = await visit(`/runs/${runs.signup}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await pawl.runs.get(runs.signup)).status).toBe("running");
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByLabel("Reason").fill("signed up twice");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Cancelled/)
      .waitFor();
    expect(await pawl.runs.get(runs.signup)).toMatchObject({
      status: "cancelled",
      error: { message: expect.stringContaining("signed up twice") },
    });
  });

  it("starts a run with the keyboard alone", async () => {
    const page = await visit("/runs");
    await page.getByRole("button", { name: "Start a run…" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("charge");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Control+A");
    await page.keyboard.type('{"order":"K-1","euros":3}');
    // Over the command, its button, and the button that goes back.
    for (const _ of ["pre", "copy", "back", "start"]) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Completed/)
      .waitFor();
    expect(await page.getByLabel("Output", { exact: true }).last().textContent()).toContain("R-K-1");
  });

  it("pauses a run, sees by whom, and resumes it", async () => {
    const { runId } = await pawl.start("order", { item: "spring" });
    const page = await visit(`/runs/${runId}`);
    await page.getByRole("button", { name: `Pause ${runId}` }).click();
    await page.getByLabel("Reason").fill("wrong address");
    await page.getByRole("button", { name: "Pause the run" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("region", { name: "Why" }).getByText("wrong address").waitFor();
    expect((await pawl.runs.get(runId)).paused).toMatchObject({ scope: "run", reason: "wrong address" });
    await page.getByRole("button", { name: `Resume ${runId}` }).click();
    await page.getByRole("button", { name: "Resume the run" }).click();
    await page.getByRole("button", { name: "Send “paid”…" }).waitFor();
    expect((await pawl.runs.get(runId)).paused).toBeNull();
  });

  it("pauses and resumes a queue", async () => {
    const page = await visit("/queues");
    await page.getByRole("button", { name: "Resume exports" }).click();
    await page.getByRole("button", { name: "Resume the queue" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await pawl.queues.paused()).toEqual([]);
  });

  it("triggers a schedule, backfills it and pauses it", async () => {
    const page = await visit("/schedules/nightly-charge");
    await page.getByRole("button", { name: "Trigger…" }).click();
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Backfill…" }).click();
    await page.getByLabel("From", { exact: true }).fill("2026-01-01T00:00");
    await page.getByLabel("To", { exact: true }).fill("2026-01-03T00:00");
    await page.getByRole("button", { name: "Start the runs" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await pawl.runs.count({ name: "charge", input: { order: "subscription" } })).toBe(4);
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.getByRole("button", { name: "Pause the schedule" }).click();
    await page.getByRole("button", { name: "Resume…" }).waitFor();
    expect((await pawl.schedules.get("nightly-charge")).paused).toBe(true);
  });

  it("changes a rate limit for all workers", async () => {
    const page = await visit("/limits");
    await page.getByRole("button", { name: "Change mail" }).click();
    await page.getByRole("dialog").getByLabel("Allowed").fill("250");
    await page.getByRole("dialog").getByRole("button", { name: "Change the limit" }).click();
    await page.getByText("250 per 1 min").waitFor();
    const limits = await until("it is set", () => pawl.limits.list());
    expect(limits.find(({ name }) => name === "mail")).toMatchObject({ allowed: 250, periodMs: 60_000 });
  });

  it("goes to a run by its id after the key /", async () => {
    const page = await visit("/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type(runs.album);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /album/ }).waitFor();
  });
});
