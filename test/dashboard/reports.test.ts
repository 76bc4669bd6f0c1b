import { job } from "pawl";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { visitShop } from "./visit.js";

const { visit, runs, pawl, serve } = await visitShop();

describe("the dashboard", () => {
  it("draws a machine: its steps, its transitions, and where a run is", async () => {
    const page = await visit("/definitions");
    await page.getByRole("link", { name: "order", exact: true }).click();
    const drawing = page.getByRole("img", { name: /A machine with the steps/ });
    expect(await drawing.getAttribute("aria-label")).toBe(
      "A machine with the steps reserve, await-payment, check, remind, ship, refuse. It begins with reserve. " +
        "Transitions: reserve to refuse, reserve to await-payment, await-payment to check, check to remind, " +
        "check to ship, remind to refuse, remind to await-payment.",
    );
    await page.getByRole("link", { name: "order", exact: true }).first().click();
    await page.goto(new URL(`/runs/${runs.order}`, page.url()).href);
    await page.getByRole("img", { name: /The run is at check\.$/ }).waitFor();
    expect(await page.locator(".step.present text").textContent()).toContain("check");
    expect(await page.locator(".step.passed").count()).toBe(2);
    expect(await page.locator(".arrow.passed").count()).toBe(2);
  });

  it("lists the runs that wait for people, and sends one its signal by a form", async () => {
    const { runId } = await pawl.start("order", { item: "pawl" }, { tags: { desk: "7" } });
    await until("it waits", async () => (await pawl.runs.get(runId)).phase === "awaiting_signal");
    const page = await visit("/waiting");
    await page.getByRole("button", { name: `Send verified to run ${runs.signup}` }).waitFor();
    await page.getByLabel("Signal", { exact: true }).fill("paid");
    await page.getByLabel("Signal", { exact: true }).press("Enter");
    await page.getByRole("link", { name: "desk=7" }).waitFor();
    await page.getByRole("button", { name: `Send paid to run ${runId}` }).click();
    await page.getByLabel("Payload").fill('{"euros":7}');
    await page.getByRole("button", { name: "Send the signal" }).click();
    await page.getByRole("link", { name: "desk=7" }).waitFor({ state: "detached" });
    expect(await pawl.result(runId)).toEqual({ item: "pawl", euros: 7 });
  });

  it("shows workers, with their leases and the versions they serve", async () => {
    const page = await visit("/workers");
    const worker = page
      .getByRole("table", { name: "Workers" })
      .locator("tbody tr")
      .filter({ hasText: "signup" });
    await worker.getByText("Alive").waitFor();
    await worker.getByRole("link", { name: "signup@1" }).waitFor();
    await page.getByRole("table", { name: "Versions that live workers serve" }).getByText("album").waitFor();
  });

  it("shows who holds a partition key, and who waits for it", async () => {
    let release = (): void => {};
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    const press = job({ name: "press", run: () => isReleased });
    await serve([press]);
    const held = await pawl.start(press, {}, { partitionKey: "customer-9" });
    await until("it executes", async () => (await pawl.runs.get(held.runId)).phase === "executing");
    const next = await pawl.start(press, {}, { partitionKey: "customer-9" });
    const page = await visit(`/runs/${next.runId}`);
    await page.getByRole("link", { name: "Show who holds the key" }).waitFor();
    await page.getByRole("link", { name: "Show the keys" }).click();
    const row = page.getByRole("row").filter({ hasText: "customer-9" });
    await row.getByText(`#${held.runId}`).waitFor();
    await row.getByText(`#${next.runId}`).waitFor();
    release();
    await pawl.result(next.runId);
  });

  it("raises the limit that a run waits for, from the page of that run", async () => {
    await pawl.limits.set("press", { allowed: 1, period: "1h" });
    await pawl.start("charge", { order: "P-1", euros: 1 }, { rateLimit: "press" });
    const { runId } = await pawl.start("charge", { order: "P-2", euros: 1 }, { rateLimit: "press" });
    await until("it is throttled", async () => (await pawl.why(runId)).reason === "throttled");
    const page = await visit(`/runs/${runId}`);
    await page.getByRole("button", { name: "Raise the limit press…" }).click();
    await page.getByRole("dialog").getByLabel("Allowed").fill("500");
    await page.getByRole("button", { name: "Change the limit" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const limits = await pawl.limits.list();
    expect(limits.find(({ name }) => name === "press")).toMatchObject({ allowed: 500 });
  });

  it("says what is wrong with the database and the setup, and how to fix it", async () => {
    const page = await visit("/doctor");
    await page.getByRole("region", { name: "Findings" }).getByText("invoice").first().waitFor();
    await page.getByRole("region", { name: "Diagnosis" }).getByText("npx pawl doctor").waitFor();
  });

  it("has charts over time, for an hour or longer", async () => {
    const page = await visit("/");
    await page.getByRole("figure", { name: /^Runs per minute: started \d+/ }).waitFor();
    await page.locator(".chart canvas").nth(3).waitFor();
    await page.getByRole("link", { name: "7 days" }).click();
    await page.getByRole("figure", { name: /^Runs per hour/ }).waitFor();
    expect(new URL(page.url()).search).toBe("?span=7d");
  });

  it("opens the steps of a child below its parent, and leads to a rerun from a step", async () => {
    const page = await visit(`/runs/${runs.album}`);
    const timeline = page.getByRole("region", { name: "Timeline" });
    await timeline
      .getByRole("button", { name: /^Steps of run/ })
      .first()
      .click();
    await expect.poll(() => timeline.getByRole("listitem").count()).toBe(5);
    await page.goto(new URL(`/runs/${runs.ended}`, page.url()).href);
    await page.getByRole("button", { name: /send-welcome/ }).click();
    await page.getByRole("button", { name: "Rerun from here…" }).click();
    expect(await page.getByLabel("The same in a terminal").textContent()).toBe(
      `npx pawl runs rerun ${runs.ended} --from send-welcome`,
    );
  });
});
